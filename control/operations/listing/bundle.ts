/** The bundle of `dropway mcp` for desktop clients (MCPB): one zip with a manifest and the client. */
import type { ClientPackage, ListedTool } from './rules.ts'

/** The file inside of the bundle that is started. */
export const ENTRY_POINT = 'server/dropway.mjs'

export function bundleManifest(
  { name, version }: ClientPackage,
  { description, tools }: { readonly description: string; readonly tools: readonly ListedTool[] },
): Record<string, unknown> {
  return {
    manifest_version: '0.3',
    name,
    display_name: 'Dropway',
    version,
    description,
    author: { name: 'Dropway' },
    license: 'MIT',
    server: {
      type: 'node',
      entry_point: ENTRY_POINT,
      mcp_config: {
        command: 'node',
        args: [`\${__dirname}/${ENTRY_POINT}`, 'mcp', '${user_config.folder}'],
        env: { DROPWAY_URL: '${user_config.url}', DROPWAY_TOKEN: '${user_config.token}' },
      },
    },
    tools: tools.map((tool) => ({ name: tool.name, description: tool.description })),
    user_config: {
      url: {
        type: 'string',
        title: 'Service',
        description: 'Its address, such as https://dropway.example',
        required: true,
      },
      token: {
        type: 'string',
        title: 'API token',
        description: 'From Account, Tokens',
        sensitive: true,
        required: true,
      },
      folder: {
        type: 'directory',
        title: 'Folder',
        description: 'Files in it may be published by their path; nothing outside of it is read',
        required: true,
      },
    },
    compatibility: { runtimes: { node: '>=20' } },
  }
}
