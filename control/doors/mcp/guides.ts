/** What an assistant can read about its tools, instead of guessing. All else is told by the guides of the docs. */
export interface Guide {
  readonly name: string
  readonly title: string
  readonly text: string
}

export const TOOL_GUIDES: readonly Guide[] = [
  {
    name: 'publishing',
    title: 'Publishing and changing drops',
    text: `# Publishing and changing drops

- A drop is a static site at \`https://<slug>.…\`. \`index.html\` at the root is its landing page; \`/about\` answers with \`about.html\` or \`about/index.html\`. Nothing runs on the server.
- \`service_publish\` takes one page (\`content\`: HTML or Markdown) or a whole site (\`files\`). The same slug again publishes a new version at the same address.
- Files of the live version that are not part of a publish would be removed: you are asked for \`replace: true\`. To change single files use \`service_edit_files\`, which keeps the others.
- \`if_version\` guards against overwriting another person's work: a publish fails unless that version is live. Read the drop, merge, and try again with the number that the error names.
- Content that does not fit into a message: \`service_upload\` returns an address; \`curl -T video.mp4 "<put_url>"\`; then name the upload in \`service_edit_files\` or \`service_publish\` (\`{"path": "video.mp4", "upload": "upl_…"}\`), or give a page or .zip to \`service_publish\` as \`upload\`. A PDF, an image, a video, a sound or a text given so gets a small page that shows it.
- Files that look like secrets (keys, \`.env\`, \`.git\`, dumps) are refused, unless the person wants them public and you send \`allow_secrets: true\`.
- Every version can be brought back with \`service_promote\`, as long as the plan keeps it.
- A single-page app with client-side routes needs only \`spa_fallback: true\` in \`service_settings\`.
`,
  },
  {
    name: 'domains',
    title: 'Custom domains with service_domain',
    text: `# Custom domains

1. \`service_domain\` with \`action: "add"\` takes the name for a drop, where the plan allows it, and answers with the DNS records to set, in the words of the domain doctor.
2. The person sets exactly these records at the DNS provider.
3. \`action: "check"\` looks again and says what is still wrong, or that the certificate is on its way. States: awaiting_dns, issuing, active, failing, blocked.
4. \`action: "remove"\` gives the name back; the drop's own address keeps working.
`,
  },
]
