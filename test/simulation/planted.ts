/**
 * Known mistakes in the publish path: wrong variants of single lines. The checker must find each of them. A mistake is
 * planted while the file is loaded; the sources stay as they are.
 */
import { registerHooks } from 'node:module'

interface Mistake {
  readonly name: string
  readonly file: string
  /** Each `from` stands there exactly once. */
  readonly edits: readonly { readonly from: string; readonly to: string }[]
}

const routePublisher = 'control/ground/routing/route-publisher.ts'
const routing = 'control/ground/routing/routing.ts'
const rules = 'control/ground/routing/history-rules.ts'
const acknowledgements = 'control/ground/routing/acknowledgements.ts'
const follower = 'edge/store/follow/follower.ts'
const admission = 'shared/contracts/admission.ts'
const replica = 'edge/store/replica/replica.ts'
const keptFiles = 'control/drops/publishing/manifest/kept-files.ts'
const classify = 'edge/gate/classify.ts'

export const mistakes: readonly Mistake[] = [
  // The publisher.
  mistake(
    'the snapshot is not written',
    routePublisher,
    "if (kind === 'route') multi.hset(keys.routes, name, value)",
    '',
  ),
  mistake(
    'a command that Redis refused counts as done',
    routePublisher,
    'results.find(([error]) => error)',
    'results.slice(-1).find(([error]) => error)',
  ),
  mistake('a promoted replica of Redis goes unnoticed', routePublisher, ' && knownLife === life', ''),
  mistake('no epoch is set', routePublisher, '    [keys.epoch, epoch],\n', ''),
  mistake(
    'every snapshot has the same epoch',
    routePublisher,
    'encodeEpoch(history, newToken())',
    "encodeEpoch(history, 'x')",
  ),
  mistake(
    'a snapshot counts as complete before its epoch is set',
    routePublisher,
    '    [keys.epoch, epoch],\n    [keys.redisLife, life],\n',
    '    [keys.redisLife, life],\n    [keys.epoch, epoch],\n',
  ),
  mistake(
    'a history that took Redis counts as its snapshot',
    routePublisher,
    'ofSnapshot !== undefined && encodeHistory(ofSnapshot) === encoded &&',
    'ofSnapshot !== undefined &&',
  ),
  mistake(
    'a new history is published before it is committed',
    routePublisher,
    'if (!own.ofThisLife) return history\n',
    'return history\n',
  ),
  mistake('the newest revision is not noted', routePublisher, 'if (last && last.revision >', 'if (!last && 0 >'),
  mistake(
    'a database that may not publish does',
    routePublisher,
    'throw new NotTheWriter(',
    'return own\n        throw new NotTheWriter(',
  ),
  mistake(
    'rows are deleted that were not published',
    routePublisher,
    'publication.deleteOutbox(rows.map(({ id }) => id))',
    'publication.deleteOutbox(rows.map(({ id }) => id + 1))',
  ),
  mistake(
    'rows are deleted that were not published as before',
    routePublisher,
    'deleteOutbox(waiting.map(({ id }) => id))',
    'deleteOutbox(waiting.map(({ id }) => id + 1))',
  ),
  mistake(
    'what has changed since the last flush counts as published',
    routePublisher,
    'if (position === undefined) return undefined\n  deleteOutbox',
    "if (position === undefined) return { position: '0-1', epoch, life, history, complete: true }\n  deleteOutbox",
  ),
  mistake(
    'a database that was set back since the last flush publishes as before',
    routePublisher,
    "if (standing.kind !== 'go on' || epoch === null",
    'if (epoch === null',
  ),
  mistake('a restored database goes unnoticed', rules, 'if (!own.ofThisLife)', 'if (false as boolean)'),
  mistake('a database that was set back goes unnoticed', rules, '(newest.ours ?? 0) < newest.revision', 'false'),
  mistake(
    'a new history is no newer than what is known',
    rules,
    'historyOfRevision(newest.revision) : 0) + 1',
    'historyOfRevision(newest.revision) : 0)',
  ),
  // Waiting for the edges.
  mistake('an acknowledgement of another snapshot counts', acknowledgements, 'state.epoch === epoch &&', ''),
  mistake('one edge is enough', acknowledgements, 'live.every(', 'live.some('),
  mistake(
    'what an edge could not read counts as read',
    acknowledgements,
    '!hosts.values().some((host) => state.refusedRoutes.has(host))',
    'true',
  ),
  mistake(
    'what an edge refuses and does not list counts as read',
    acknowledgements,
    '  if (state?.refusesMore && hosts.size > 0) return false\n',
    '',
  ),
  mistake(
    'a position a little earlier counts',
    acknowledgements,
    'compareStreamIds(position, wanted) < 0) return false',
    'compareStreamIds(position, wanted) < -60) return false',
  ),
  mistake(
    'a snapshot that was replaced counts as reached',
    acknowledgements,
    'return SUPERSEDED',
    "return { kind: 'reached' }",
  ),
  mistake(
    'an edge that is late counts as reached',
    acknowledgements,
    "outcome ?? { kind: 'late' }",
    "outcome ?? { kind: 'reached' }",
  ),
  mistake(
    'the position beside an old state is believed',
    'shared/contracts/live-edges.ts',
    'position: state.position, state }',
    'state }',
  ),
  mistake('what was lost is acknowledged', routing, '|| isLost(changes, flushed.history)', ''),
  mistake(
    'a run that is under way counts for later calls',
    routing,
    'if (!current) return begin()',
    'return (current as Promise<Result> | undefined) ?? begin()',
  ),
  mistake('no one decides about unknown hosts', routing, '        await decideUnknown()\n', ''),
  mistake(
    'entries of the same millisecond are the same',
    'shared/redis/stream.ts',
    '|| Number(aSeq) - Number(bSeq)',
    '',
  ),
  // The follower.
  mistake(
    'it acknowledges before the workers confirm',
    follower,
    'if (changes.length > 0) await this.#dependencies.announce',
    'if (changes.length > 0) void this.#dependencies.announce',
  ),
  mistake(
    'it acknowledges before it applies',
    follower,
    '    const { changes } = await this.#replica.apply(entries, { position }, refused)',
    '    this.#served = { ...this.#served, position }\n    await this.#acknowledge()\n    const { changes } = await this.#replica.apply(entries, { position }, refused)',
  ),
  mistake(
    'it is level before it has read the log',
    follower,
    'hasSnapshot(replica) && compareStreamIds(position, level) >= 0',
    'hasSnapshot(replica)',
  ),
  mistake(
    'a host of a snapshot that is still being read is in doubt',
    follower,
    'takesUnread: true',
    'takesUnread: false',
  ),
  mistake('it is level before there is a snapshot', follower, 'hasSnapshot(replica) && ', ''),
  mistake('workers are not told of a snapshot', follower, '.finally(() => this.#dependencies.announce(undefined))', ''),
  mistake(
    'a log that was trimmed before it came goes unnoticed',
    follower,
    '|| hasGap(known.position, first?.[0], tip?.[0])',
    '',
  ),
  mistake(
    'a log that is trimmed while it follows goes unnoticed',
    follower,
    '&& (await isTrimmedPast(this.#commands, position))',
    '&& false',
  ),
  mistake('a snapshot of an older history is taken', follower, "['older', 'rival'].includes(", "['none'].includes("),
  mistake(
    'entries that came while the snapshot was read are skipped',
    follower,
    'position: tip?.[0] ?? START_OF_LOG },',
    "position: (await commands.xrevrange(keys.log, '+', '-', 'COUNT', 1))[0]?.[0] ?? START_OF_LOG },",
  ),
  mistake(
    'a snapshot that another life of Redis left counts',
    follower,
    '|| lifeOfSnapshot === life ? epoch : null',
    '|| life ? epoch : null',
  ),
  mistake(
    'a new epoch goes unnoticed',
    follower,
    '    this.#mustReconcile = true\n    this.#blocking?.disconnect()',
    '',
  ),
  mistake(
    'an edge that stands aside does not notice that its connection is lost',
    follower,
    "!== 'ready') return !this.#isReconciled",
    "!== 'ready') return true",
  ),
  mistake('unknown hosts are not told', follower, 'await reportUnknown(commands, replica, log, named)', ''),
  mistake('what a snapshot could not tell is forgotten', follower, 'START_OF_LOG }, refused)', 'START_OF_LOG }, [])'),
  mistake(
    'what was forgotten is not searched for',
    follower,
    'if (isDue && replica.forgotten() > 0) await this.#searchOn(position)',
    '',
  ),
  // The replica and the workers.
  mistake('an older revision wins', replica, '|| revision < wanted)', ')'),
  mistake('a newer revision loses', replica, '|| revision < wanted)', '|| (held !== undefined && revision > held))'),
  mistake(
    'an edge that missed something goes on with what it had before it',
    replica,
    'return isServed || isNextToHeld ? []',
    'return isServed || host ? []',
  ),
  mistake(
    'the history is not remembered',
    replica,
    "storage.transaction(() => meta.put('history', encodeHistory(adopted)))",
    'storage.transaction(() => adopted)',
  ),
  mistake(
    'a history is remembered once its snapshot is complete',
    follower,
    '    if (history) await replica.adopt(history)\n',
    '',
    '    await replica.completeSnapshot(',
    '    if (history) await replica.adopt(history)\n    await replica.completeSnapshot(',
  ),
  mistake(
    'records of a newer history are applied before its snapshot',
    follower,
    'historyOfRevision(entry.record.revision) > history.ordinal',
    'historyOfRevision(entry.record.revision) < 0',
  ),
  mistake(
    'a certificate clears the refusal of a route',
    replica,
    'return `${kind} ${name}`',
    'return kind === kind ? name : name',
  ),
  mistake('refusals are not kept', replica, '        noteRefusals(storage, served, news, maxRefusals)\n', ''),
  mistake(
    'what cannot be read is skipped and acknowledged',
    'edge/store/follow/read-entries.ts',
    'refused.set(refusalKey(refusal), refusal)',
    '',
  ),
  mistake(
    'a worker confirms without forgetting',
    'edge/store/forget.ts',
    "if (kind === 'route') routes.forget(name)\n    else if",
    'if',
  ),
  mistake('a worker keeps everything after a snapshot', 'edge/store/forget.ts', 'routes.forgetAll()', ''),
  // Who may see a drop.
  mistake(
    'an admission that was taken back opens',
    admission,
    '!route.viewers.ended.some(([subject]) => subject === admission.subject)',
    'true',
  ),
  mistake(
    'a restored database readmits',
    admission,
    'admission.history === historyOfRevision(route.revision) &&\n',
    '\n',
  ),
  // Files of former versions.
  mistake('a purge leaves what was kept', keptFiles, 'if (terms.purge || terms.keepMs <= 0)', 'if (terms.keepMs <= 0)'),
  mistake(
    'what is to be kept for no time at all is kept while its version is retained',
    keptFiles,
    'terms.purge || terms.keepMs <= 0',
    'terms.purge',
  ),
  mistake(
    'a preview is remembered beyond its record',
    classify,
    'const made = new WeakMap<ServedSite, Map<string, Destination | undefined>>()',
    'const made = new Map<string, Map<string, Destination | undefined>>()',
    'let ofSite = made.get(record)',
    'let ofSite = made.get(record.host)',
    'made.set(record, (ofSite = new Map()))',
    'made.set(record.host, (ofSite = new Map()))',
  ),
  mistake(
    'the manifest of an address is remembered beyond its record',
    classify,
    'const destinations = new WeakMap<ServedRoute, Destination>()',
    'const destinations = new Map<string, Destination>()',
    'let destination = destinations.get(record)',
    'let destination = destinations.get(record.host)',
    'destinations.set(record, (',
    'destinations.set(record.host, (',
  ),
  mistake(
    'a worker that died is waited for',
    'edge/store/questions.ts',
    'for (const resolve of open.values()) resolve(undefined)',
    '',
  ),
]

/** `pairs`: what stands in the file, then what is to stand there. */
function mistake(name: string, file: string, ...pairs: readonly string[]): Mistake {
  const edits = pairs.flatMap((from, at) => (at % 2 === 0 ? [{ from, to: pairs[at + 1]! }] : []))
  return { name, file, edits }
}

/** From here on the file is loaded with the mistake in it. */
export function plant(name: string): void {
  const planted = mistakes.find((each) => each.name === name)
  if (!planted) throw new Error(`there is no mistake "${name}"`)
  registerHooks({
    load(url, context, nextLoad) {
      const loaded = nextLoad(url, context)
      if (!url.endsWith(`/${planted.file}`)) return loaded
      const source =
        typeof loaded.source === 'string' ? loaded.source : Buffer.from(loaded.source as Uint8Array).toString()
      return { ...loaded, source: planted.edits.reduce((text, { from, to }) => replaceOnce(text, from, to), source) }
    },
  })
}

function replaceOnce(text: string, from: string, to: string): string {
  const pieces = text.split(from)
  if (pieces.length !== 2) throw new Error(`"${from}" does not stand there exactly once`)
  return pieces.join(to)
}
