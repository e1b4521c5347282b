/**
 * Containers without an engine: the root file system of an image that buildah built, in namespaces of its own, read-only,
 * as the user that the image names, without capabilities, with volumes and a network. Engines need a privilege
 * (CAP_SYS_RESOURCE) that small sandboxes lack; this needs root. Everything ends with this process, however that ends.
 */
import { execFileSync, spawn, type ChildProcess } from 'node:child_process'
import { once } from 'node:events'
import { chmodSync, chownSync, mkdirSync, mkdtempSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs'
import net from 'node:net'
import os from 'node:os'
import path from 'node:path'
import { until } from '../support/processes.ts'

export interface Image {
  readonly name: string
  /** Its root file system, as a folder of this machine. */
  readonly root: string
  readonly entrypoint: readonly string[]
  readonly command: readonly string[]
  readonly environment: readonly string[]
  readonly uid: number
  readonly gid: number
  readonly folder: string
  readonly labels: Readonly<Record<string, string>>
  readonly healthcheck: readonly string[]
  /** What the layers hold together. */
  readonly bytes: number
  remove(): void
}

const run = (program: string, args: readonly string[]): string =>
  execFileSync(program, args, { encoding: 'utf8', maxBuffer: 64 << 20, stdio: ['ignore', 'pipe', 'pipe'] }).trim()

interface Inspected {
  readonly Docker: {
    readonly config: {
      readonly User: string
      readonly Env: readonly string[]
      readonly Entrypoint: readonly string[]
      readonly Cmd: readonly string[]
      readonly WorkingDir: string
      readonly Labels: Readonly<Record<string, string>>
      readonly Healthcheck?: { readonly Test: readonly string[] }
    }
  }
}

export function openImage(name: string): Image {
  const { config } = (JSON.parse(run('buildah', ['inspect', '--type', 'image', name])) as Inspected).Docker
  const container = run('buildah', ['from', '--pull-never', name])
  const root = run('buildah', ['mount', container])
  const [uid = 0, gid = 0] = config.User.split(':').map(Number)
  return {
    name,
    root,
    entrypoint: config.Entrypoint,
    command: config.Cmd,
    environment: config.Env,
    uid,
    gid,
    folder: config.WorkingDir,
    labels: config.Labels,
    healthcheck: config.Healthcheck?.Test ?? [],
    bytes: Number(run('du', ['--summarize', '--bytes', root]).split('\t')[0]),
    remove: () => void run('buildah', ['rm', container]),
  }
}

/** Builds what a working tree is, or what a commit was; layers that are the same are not built again. */
export function buildImage(name: string, folder: string): void {
  execFileSync('sh', ['.docker/build.sh', name], { cwd: folder, stdio: 'ignore', maxBuffer: 64 << 20 })
}

/** A folder for a volume. A new one takes owner and mode of the directory that it covers, as engines do it. */
export function createVolume(image: Image, covered: string): string {
  const folder = mkdtempSync(path.join(os.tmpdir(), 'dropway-volume-'))
  const { uid, gid, mode } = statSync(path.join(image.root, covered))
  chownSync(folder, uid, gid)
  chmodSync(folder, mode & 0o7777)
  return folder
}

export interface Mount {
  readonly source: string
  readonly target: string
  readonly readOnly?: boolean
}

export interface ContainerOptions {
  readonly image: Image
  /** Its name on the network. */
  readonly name: string
  /** Instead of the image's own. */
  readonly entrypoint?: readonly string[]
  readonly command?: readonly string[]
  readonly environment?: Readonly<Record<string, string>>
  readonly mounts?: readonly Mount[]
}

export interface Container {
  /** The process of this machine that everything in it stands below. */
  readonly pid: number
  output(): string
  /** Undefined while it runs. */
  exitCode(): number | null
  /** Runs a command in it, as its user; resolves its exit code and what it said. */
  execute(command: readonly string[]): { code: number; output: string }
  /** Lets a port of this machine's loopback lead to one of the container's, until that ends. */
  publish(port: number, inside: number): Promise<void>
  kill(): Promise<void>
  stop(): Promise<void>
}

export interface Network {
  readonly hosts: ReadonlyMap<string, string>
  start(options: ContainerOptions): Container
  /** Runs a program of this machine under a name of the network. */
  startProgram(name: string, program: string, args: readonly string[]): ChildProcess
  close(): Promise<void>
}

/** Prepares the mounts, then becomes the first process of the container. Its arguments are read by `start`. */
const CONTAINER_SCRIPT = `set -eu
root=$1 uid=$2 gid=$3 folder=$4 hosts=$5
shift 5
mount --make-rprivate /
mount --bind "$root" "$root"
mount -t proc proc "$root/proc"
mount -t tmpfs -o mode=755 tmpfs "$root/dev"
for device in null zero full random urandom; do touch "$root/dev/$device"; mount --bind "/dev/$device" "$root/dev/$device"; done
mkdir "$root/dev/shm"
ln -s /proc/self/fd "$root/dev/fd"
mount -t tmpfs -o mode=1777 tmpfs "$root/dev/shm"
mount -t tmpfs -o mode=1777 tmpfs "$root/tmp"
mount --bind "$hosts" "$root/etc/hosts"
while [ "$1" != -- ]; do
  mount --bind "$1" "$root$2"
  [ "$3" = ro ] && mount -o remount,bind,ro "$root$2"
  shift 3
done
shift
mount -o remount,bind,ro "$root"
exec setpriv --no-new-privs --bounding-set=-all,+sys_chroot,+setuid,+setgid --inh-caps=-all \\
  chroot --userspec="$uid:$gid" --groups= "$root" /bin/sh -c 'cd "$0" && exec "$@"' "$folder" "$@"
`

/** Each test run has a network of its own among those that the compose file's controls trust. */
const SUBNET = `172.30.${process.pid % 250}`

export async function createNetwork(names: readonly string[]): Promise<Network> {
  const folder = mkdtempSync(path.join(os.tmpdir(), 'dropway-network-'))
  const hostsFile = path.join(folder, 'hosts')
  const hosts = new Map(names.map((name, index) => [name, `${SUBNET}.${index + 10}`]))
  writeFileSync(
    hostsFile,
    ['127.0.0.1 localhost', ...[...hosts].map(([name, ip]) => `${ip} ${name}`)].join('\n') + '\n',
  )
  chmodSync(folder, 0o755)
  chmodSync(hostsFile, 0o644)
  const holders = new Map<string, ChildProcess>()
  /** A process that does nothing but keep a network namespace; its wires go with it. */
  const hold = async (name: string): Promise<number> => {
    const holder = spawn('setpriv', ['--pdeathsig', 'KILL', 'unshare', '--net', 'sleep', 'infinity'])
    holders.set(name, holder)
    const pid = holder.pid!
    const own = readNamespace(process.pid)
    await until(() => ![undefined, own].includes(readNamespace(pid)), `the network of ${name}`)
    return pid
  }
  const within = (pid: number, args: readonly string[]): string =>
    run('nsenter', [`--net=/proc/${pid}/ns/net`, 'ip', ...args])
  const wires = `dw${process.pid}`
  const bridge = await hold('bridge')
  within(bridge, ['link', 'add', 'bridge', 'type', 'bridge'])
  within(bridge, ['link', 'set', 'bridge', 'up'])
  const connect = (wire: string): void => {
    within(bridge, ['link', 'set', wire, 'master', 'bridge'])
    within(bridge, ['link', 'set', wire, 'up'])
  }
  run('ip', ['link', 'add', wires, 'type', 'veth', 'peer', 'name', 'machine', 'netns', String(bridge)])
  run('ip', ['address', 'add', `${SUBNET}.1/24`, 'dev', wires])
  run('ip', ['link', 'set', wires, 'up'])
  connect('machine')
  for (const [index, [name, address]] of [...hosts].entries()) {
    const pid = await hold(name)
    within(bridge, ['link', 'add', `wire${index}`, 'type', 'veth', 'peer', 'name', 'eth0', 'netns', String(pid)])
    connect(`wire${index}`)
    within(pid, ['address', 'add', `${address}/24`, 'dev', 'eth0'])
    within(pid, ['link', 'set', 'eth0', 'up'])
    within(pid, ['link', 'set', 'lo', 'up'])
  }
  const enter = (name: string): string[] => [`--net=/proc/${holders.get(name)!.pid}/ns/net`]
  const running = new Set<ChildProcess>()
  const begin = (args: readonly string[]): ChildProcess => {
    const child = spawn('setpriv', ['--pdeathsig', 'KILL', 'nsenter', ...args], { stdio: ['ignore', 'pipe', 'pipe'] })
    running.add(child)
    child.once('exit', () => running.delete(child))
    return child
  }
  return {
    hosts,
    start(options) {
      const child = begin([...enter(options.name), ...containerArguments(options, hostsFile)])
      return containerOf(child, options, hosts.get(options.name)!)
    },
    startProgram: (name, program, args) => begin([...enter(name), program, ...args]),
    async close() {
      // The kernel removes the wires of a namespace some time after its last process has ended, and the next network wants the name.
      run('ip', ['link', 'delete', wires])
      for (const child of [...running, ...holders.values()]) {
        child.kill('SIGKILL')
        if (child.exitCode === null && child.signalCode === null) await once(child, 'exit')
      }
      rmSync(folder, { recursive: true })
    },
  }
}

/** Starts a container in this machine's own network, with everything that listens on its loopback. */
export function startOnMachine(options: ContainerOptions): Container {
  const args = ['--pdeathsig', 'KILL', ...containerArguments(options, '/etc/hosts')]
  return containerOf(spawn('setpriv', args, { stdio: ['ignore', 'pipe', 'pipe'] }), options, '127.0.0.1')
}

function containerArguments(options: ContainerOptions, hostsFile: string): string[] {
  const { image, entrypoint = image.entrypoint, command = image.command, environment = {}, mounts = [] } = options
  // Engines make what volumes cover, and a file for the names.
  for (const { target } of mounts) mkdirSync(path.join(image.root, target), { recursive: true })
  writeFileSync(path.join(image.root, 'etc/hosts'), '')
  const settings = [...image.environment, ...Object.entries(environment).map(([key, value]) => `${key}=${value}`)]
  return [
    // The outer one ends with this process and takes the inner one along, whoever runs in that.
    ...['unshare', '--pid', '--fork', '--kill-child'],
    ...['unshare', '--mount', '--pid', '--ipc', '--uts', '--fork'],
    ...['sh', '-c', CONTAINER_SCRIPT, 'container'],
    ...[image.root, String(image.uid), String(image.gid), image.folder, hostsFile],
    ...mounts.flatMap(({ source, target, readOnly }) => [source, target, readOnly ? 'ro' : 'rw']),
    ...['--', 'env', '-i', ...settings, ...entrypoint, ...command],
  ]
}

function containerOf(child: ChildProcess, { image, environment = {} }: ContainerOptions, address: string): Container {
  let said = ''
  for (const stream of [child.stdout!, child.stderr!]) stream.on('data', (data: Buffer) => (said += data.toString()))
  const forwarders: net.Server[] = []
  const ended = async (): Promise<void> => {
    if (child.exitCode === null && child.signalCode === null) await once(child, 'exit')
    for (const forwarder of forwarders) forwarder.close()
  }
  /** The first process of the container, as this machine counts; undefined when it has ended. */
  const first = (): number | undefined => {
    const outer = childOf(child.pid!)
    return outer === undefined ? undefined : childOf(outer)
  }
  return {
    pid: child.pid!,
    output: () => said,
    exitCode: () => child.exitCode,
    execute(command) {
      const settings = [...image.environment, ...Object.entries(environment).map(([key, value]) => `${key}=${value}`)]
      const args = ['--target', String(first()), '--mount', '--pid', '--net', '--root', `--wdns=${image.folder}`]
      const user = ['--setuid', String(image.uid), '--setgid', String(image.gid)]
      try {
        return { code: 0, output: run('nsenter', [...args, ...user, '/bin/env', '-i', ...settings, ...command]) }
      } catch (error) {
        const { status, stdout, stderr } = error as { status: number; stdout: string; stderr: string }
        return { code: status, output: `${stdout}${stderr}` }
      }
    },
    async publish(port, inside) {
      const forwarder = net.createServer((visitor) => join(visitor, net.connect(inside, address)))
      forwarders.push(forwarder)
      forwarder.listen(port, '127.0.0.1')
      await once(forwarder, 'listening')
    },
    async kill() {
      endProcess(childOf(child.pid!), 'SIGKILL')
      await ended()
    },
    async stop() {
      endProcess(first(), 'SIGTERM')
      await ended()
    },
  }
}

/** The one child of a process; undefined when there is none. */
function childOf(pid: number): number | undefined {
  try {
    return Number(readFileSync(`/proc/${pid}/task/${pid}/children`, 'utf8').split(' ')[0]) || undefined
  } catch {
    return undefined
  }
}

function endProcess(pid: number | undefined, signal: NodeJS.Signals): void {
  if (pid !== undefined) process.kill(pid, signal)
}

/** Carries bytes both ways; the end of one is the end of the other. */
function join(one: net.Socket, other: net.Socket): void {
  one.pipe(other).pipe(one)
  one.on('error', () => other.destroy()).on('close', () => other.destroy())
  other.on('error', () => one.destroy()).on('close', () => one.destroy())
}

/** Which network a process is in; undefined before it is there. */
function readNamespace(pid: number): number | undefined {
  return statSync(`/proc/${pid}/ns/net`, { throwIfNoEntry: false })?.ino
}
