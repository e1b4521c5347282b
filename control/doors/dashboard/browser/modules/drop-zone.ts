/** Makes a `[data-zone]` take what is dropped on it, folders included. */
export interface PickedFile {
  readonly file: File
  /** Relative path inside the dropped folder, or the bare name. */
  readonly path: string
}

export function watchZone(zone: HTMLElement, onFiles: (files: PickedFile[]) => void): void {
  for (const type of ['dragenter', 'dragover']) {
    zone.addEventListener(type, (event) => {
      event.preventDefault()
      zone.classList.add('over')
    })
  }
  for (const type of ['dragleave', 'drop']) zone.addEventListener(type, () => zone.classList.remove('over'))
  zone.addEventListener('drop', (event) => {
    event.preventDefault()
    if (event.dataTransfer) void droppedFiles(event.dataTransfer).then(onFiles)
  })
  const input = zone.querySelector('input')
  input?.addEventListener('change', () => {
    const files = [...(input.files ?? [])].map((file) => ({ file, path: file.webkitRelativePath || file.name }))
    if (files.length > 0) onFiles(withoutCommonFolder(files))
  })
}

async function droppedFiles(transfer: DataTransfer): Promise<PickedFile[]> {
  const entries = [...transfer.items].map((item) => item.webkitGetAsEntry()).filter((entry) => entry !== null)
  const found: PickedFile[] = []
  for (const entry of entries) await walk(entry, '', found)
  return withoutCommonFolder(found)
}

async function walk(entry: FileSystemEntry, folder: string, found: PickedFile[]): Promise<void> {
  const path = folder + entry.name
  if (entry.isFile) {
    const file = await new Promise<File>((resolve, reject) => (entry as FileSystemFileEntry).file(resolve, reject))
    found.push({ file, path })
    return
  }
  const reader = (entry as FileSystemDirectoryEntry).createReader()
  for (;;) {
    // A reader hands out at most 100 entries at a time.
    const batch = await new Promise<FileSystemEntry[]>((resolve, reject) => reader.readEntries(resolve, reject))
    if (batch.length === 0) return
    for (const child of batch) await walk(child, `${path}/`, found)
  }
}

/** A dropped folder is the site itself: `dist/index.html` is the landing page. */
function withoutCommonFolder(files: PickedFile[]): PickedFile[] {
  const top = files[0]?.path.split('/')[0] ?? ''
  const isShared = files.every((file) => file.path.startsWith(`${top}/`))
  return isShared ? files.map((file) => ({ ...file, path: file.path.slice(top.length + 1) })) : files
}
