/** Small words for the REST API in acceptance tests. */
import type { Account, Stack } from './stack.ts'

export function fileForm(
  name: string,
  content: string | Uint8Array,
  fields: Readonly<Record<string, string>> = {},
): FormData {
  const form = new FormData()
  for (const [field, value] of Object.entries(fields)) form.append(field, value)
  form.append('file', new File([content as BlobPart], name))
  return form
}

/** Shape A: `files` with parallel `paths`. */
export function bundleForm(files: Readonly<Record<string, string | Uint8Array>>): FormData {
  const form = new FormData()
  for (const [path, content] of Object.entries(files)) {
    form.append('files', new File([content as BlobPart], path.split('/').at(-1)!))
    form.append('paths', path)
  }
  return form
}

export function apiFor(stack: Stack, { token }: Pick<Account, 'token'>) {
  const sites = '/api/v1/sites'
  return {
    create: (json: unknown = {}) => stack.fetch(sites, { token, json }),
    list: () => stack.fetch(sites, { token }),
    get: (id: string) => stack.fetch(`${sites}/${id}`, { token }),
    patch: (id: string, json: unknown) => stack.fetch(`${sites}/${id}`, { token, method: 'PATCH', json }),
    delete: (id: string) => stack.fetch(`${sites}/${id}`, { token, method: 'DELETE' }),
    upload: (id: string, body: FormData) => stack.fetch(`${sites}/${id}/upload`, { token, body }),
    uploadBundle: (id: string, body: FormData) => stack.fetch(`${sites}/${id}/upload-bundle`, { token, body }),
    versions: (id: string) => stack.fetch(`${sites}/${id}/versions`, { token }),
    promote: (id: string, version: string) =>
      stack.fetch(`${sites}/${id}/versions/${version}/promote`, { token, method: 'POST' }),
  }
}
