/**
 * Units of systemd, one per role: the text, and what `admin install-service` writes. Hardened as far as Node allows:
 * it compiles code while it runs, so memory that can be both written and executed cannot be forbidden.
 */
import { existsSync } from 'node:fs'
import { mkdir, writeFile } from 'node:fs/promises'
import path from 'node:path'
import { allocatorSettings } from '../../../shared/running/memory.ts'
import { OPERATOR_NEEDED } from '../../../shared/settings/env.ts'

export const serviceRoles = ['all', 'control', 'edge'] as const
export type ServiceRole = (typeof serviceRoles)[number]

const PROGRAMS: Readonly<Record<ServiceRole, string>> = {
  all: 'control/operations/supervisor/main.ts',
  control: 'control/main.ts',
  edge: 'edge/main.ts',
}

export interface UnitSettings {
  readonly role: ServiceRole
  readonly user: string
  /** The folder of this release. */
  readonly folder: string
  /** The Node that runs it. */
  readonly node: string
  /** Where the settings are. */
  readonly environmentFile: string
}

export function unitName(role: ServiceRole): string {
  return role === 'all' ? 'dropway.service' : `dropway-${role}.service`
}

export function unitText({ role, user, folder, node, environmentFile }: UnitSettings): string {
  // Ports below 1024 are for edges; a control has no need of any privilege.
  const capabilities = role === 'control' ? '' : 'CAP_NET_BIND_SERVICE'
  // A supervisor says it to the control that it starts.
  const allocator = role === 'control' ? allocatorSettings(role) : {}
  const environment = Object.entries({ DATA_DIR: '/var/lib/dropway', ...allocator })
  return `# Written by "admin install-service"; your own changes belong into a drop-in: systemctl edit ${unitName(role)}
[Unit]
Description=Dropway (${role === 'all' ? 'everything on this machine' : role})
Documentation=file:${folder}/control/operations/OPERATING.md
Wants=network-online.target
After=network-online.target
# Postgres or Redis may be away for longer than a few starts: it is tried until they are back.
StartLimitIntervalSec=0

[Service]
Type=exec
User=${user}
Group=${user}
WorkingDirectory=${folder}
Environment=${environment.map(([name, value]) => `${name}=${value}`).join(' ')}
EnvironmentFile=${environmentFile}
ExecStart=${node} ${PROGRAMS[role]}
# A plane that hangs kills itself and is started again.
Restart=always
RestartSec=1
# Wrong settings stay wrong: the unit is "failed", and the journal says what to mend.
RestartPreventExitStatus=${OPERATOR_NEEDED}
# Visitors finish what they have begun (EDGE_DRAIN).
TimeoutStopSec=45
KillMode=mixed
LimitNOFILE=1048576

StateDirectory=dropway
StateDirectoryMode=0700
UMask=0077
AmbientCapabilities=${capabilities}
CapabilityBoundingSet=${capabilities}
NoNewPrivileges=yes
ProtectSystem=strict
ProtectHome=yes
PrivateTmp=yes
PrivateDevices=yes
DevicePolicy=closed
${role === 'control' ? 'PrivateUsers=yes\n' : ''}ProtectClock=yes
ProtectControlGroups=yes
ProtectHostname=yes
ProtectKernelLogs=yes
ProtectKernelModules=yes
ProtectKernelTunables=yes
ProtectProc=invisible
LockPersonality=yes
KeyringMode=private
RemoveIPC=yes
RestrictAddressFamilies=AF_INET AF_INET6 AF_UNIX AF_NETLINK
RestrictNamespaces=yes
RestrictRealtime=yes
RestrictSUIDSGID=yes
SystemCallArchitectures=native
SystemCallFilter=@system-service
SystemCallFilter=~@privileged
SystemCallErrorNumber=EPERM

[Install]
WantedBy=multi-user.target
`
}

/** Why a release in this folder cannot be run so; undefined when it can. */
export function folderProblem(folder: string): string | undefined {
  const isHidden = ['/home', '/root', '/run/user', '/tmp', '/var/tmp'].some(
    (place) => folder === place || folder.startsWith(`${place}/`),
  )
  if (isHidden) return `Services do not see ${folder}. Put the release elsewhere, for instance into /opt/dropway.`
  return /[\s%"'\\]/.test(folder) ? `The folder of the release must have a plain name, not ${folder}.` : undefined
}

const SETTINGS_TEMPLATE = `# Settings of Dropway, one per line: NAME=value. All of them are in README.md.
# BASE_URL=https://dropway.example
# SITES_DOMAIN=drops.example
# SMTP_URL=smtps://user:password@mail.example:465
# CONTACT_EMAIL=someone@example.com
`

export interface InstalledService {
  readonly written: readonly string[]
  /** What is left to do, in this order. */
  readonly next: readonly string[]
}

/** Writes the unit, and the file of settings where there is none. Starts nothing. */
export async function installService(settings: UnitSettings, directory: string): Promise<InstalledService> {
  const unit = path.join(directory, unitName(settings.role))
  await mkdir(directory, { recursive: true })
  await writeFile(unit, unitText(settings), { mode: 0o644 })
  const written = [unit]
  if (!existsSync(settings.environmentFile)) {
    await mkdir(path.dirname(settings.environmentFile), { recursive: true })
    await writeFile(settings.environmentFile, SETTINGS_TEMPLATE, { mode: 0o600 })
    written.push(settings.environmentFile)
  }
  return {
    written,
    next: [
      `id ${settings.user} || useradd --system --home-dir /var/lib/dropway --shell /usr/sbin/nologin ${settings.user}`,
      `editor ${settings.environmentFile}`,
      `systemctl daemon-reload && systemctl enable --now ${unitName(settings.role)}`,
      `journalctl -fu ${unitName(settings.role)}`,
    ],
  }
}
