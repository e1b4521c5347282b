/**
 * Whatever a process of ours writes is its user's alone: DATA_DIR holds password hashes, keys, mails with links that
 * open accounts, and content behind passwords. Child processes inherit it, Postgres and Redis among them.
 */
export function keepFilesPrivate(): void {
  process.umask(0o077)
}
