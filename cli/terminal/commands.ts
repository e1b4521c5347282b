/** Every command, in the order of `dropway help`. */
import type { Command } from './command.ts'
import { logout, tokens, usage, whoami } from '../commands/account.ts'
import { completionCommand } from './completion.ts'
import { deploy } from '../commands/deploy/deploy.ts'
import { resolve, threads } from '../commands/deploy/threads.ts'
import { dev } from '../commands/dev.ts'
import { domains } from '../commands/domains.ts'
import { drop } from '../commands/drop.ts'
import { exportAll, list, open, password, previews, promote, rollback, versions } from '../commands/drops.ts'
import { diff, init, link, unlink } from '../commands/linking.ts'
import { login } from '../commands/login.ts'
import { deleteDrop, keep, rename, settings, stats } from '../commands/manage.ts'
import { connect } from '../commands/assistants/connect.ts'
import { mcp } from '../commands/assistants/mcp.ts'
import { pullRequest } from '../commands/deploy/pull-request.ts'
import { org } from '../commands/org.ts'
import { publishers } from '../commands/deploy/publishers.ts'
import { share, shared, unshare, viewers } from '../commands/sharing.ts'

export const commands: readonly Command[] = [
  login,
  deploy,
  pullRequest,
  drop,
  dev,
  init,
  link,
  unlink,
  diff,
  list,
  open,
  versions,
  rollback,
  promote,
  previews,
  settings,
  share,
  unshare,
  viewers,
  shared,
  threads,
  resolve,
  password,
  domains,
  publishers,
  stats,
  rename,
  keep,
  deleteDrop,
  exportAll,
  usage,
  tokens,
  org,
  whoami,
  logout,
  connect,
  mcp,
  completionCommand(() => commands),
]
