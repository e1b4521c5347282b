/** What a person lets go over the window, or chooses: files and whole folders, each with its path. */
export interface ChosenFile {
  readonly file: File
  /** With the folder that was dropped; a file that came in none has its bare name. */
  readonly path: string
}

type OnFiles = (files: readonly ChosenFile[]) => void

/** A file that was let go and cannot be read: moved since, in another program's hands, or not for this browser. */
export class UnreadableFile extends Error {
  constructor(path: string) {
    super(`${path} cannot be read. Nothing was published. Look whether it is still there, and choose it again.`)
  }
}

/** The whole window takes what is let go over it: a near miss must not open the file in place of the page. */
export function watchWindow(onFiles: OnFiles, onProblem: (problem: unknown) => void): void {
  const veil = document.createElement('div')
  veil.className = 'veil'
  veil.hidden = true
  veil.append(Object.assign(document.createElement('p'), { textContent: 'Let go to publish' }))
  document.body.append(veil)
  for (const type of ['dragenter', 'dragover'] as const) {
    addEventListener(type, (event) => {
      if (!event.dataTransfer?.types.includes('Files')) return
      event.preventDefault()
      event.dataTransfer.dropEffect = 'copy'
      veil.hidden = false
    })
  }
  addEventListener('dragleave', (event) => {
    if (event.relatedTarget === null) veil.hidden = true
  })
  addEventListener('drop', (event) => {
    veil.hidden = true
    if (!event.dataTransfer?.types.includes('Files')) return
    event.preventDefault()
    droppedFiles(event.dataTransfer).then(onFiles, onProblem)
  })
}

/** So many are opened at once. */
const READ_AT_ONCE = 50

/** Throws UnreadableFile: some browsers send a file that they cannot read as nothing, without a word. */
export async function requireReadable(files: readonly ChosenFile[]): Promise<void> {
  for (let start = 0; start < files.length; start += READ_AT_ONCE) {
    const batch = files.slice(start, start + READ_AT_ONCE)
    await Promise.all(
      batch.map(({ file, path }) =>
        file
          .slice(0, 1)
          .arrayBuffer()
          .catch(() => {
            throw new UnreadableFile(path)
          }),
      ),
    )
  }
}

export function watchInput(input: HTMLInputElement, onFiles: OnFiles): void {
  input.addEventListener('change', () => {
    const files = [...(input.files ?? [])].map((file) => ({ file, path: file.webkitRelativePath || file.name }))
    // So that the same file can be chosen again.
    input.value = ''
    if (files.length > 0) onFiles(files)
  })
}

async function droppedFiles(transfer: DataTransfer): Promise<ChosenFile[]> {
  // Both lists are emptied when the event is over.
  const entries = [...transfer.items].map((item) => item.webkitGetAsEntry())
  const plain = [...transfer.files]
  if (entries.includes(null)) return plain.map((file) => ({ file, path: file.name }))
  const found: ChosenFile[] = []
  for (const entry of entries) if (entry) await walk(entry, '', found)
  return found
}

async function walk(entry: FileSystemEntry, folder: string, found: ChosenFile[]): Promise<void> {
  const path = folder + entry.name
  if (entry.isFile) {
    const file = await new Promise<File>((resolve, reject) =>
      (entry as FileSystemFileEntry).file(resolve, () => reject(new UnreadableFile(path))),
    )
    found.push({ file, path })
    return
  }
  const reader = (entry as FileSystemDirectoryEntry).createReader()
  for (;;) {
    // A reader hands out at most 100 entries at a time.
    const batch = await new Promise<FileSystemEntry[]>((resolve, reject) =>
      reader.readEntries(resolve, () => reject(new UnreadableFile(path))),
    )
    if (batch.length === 0) return
    for (const child of batch) await walk(child, `${path}/`, found)
  }
}
