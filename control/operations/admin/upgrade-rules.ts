/** What a migration will do to a database, read from its text: which tables it holds up, and for how long. Pure. */

/** `create` and `add` take a moment whatever the table holds; `index` and `rows` take longer the more there is. */
export type StepKind = 'create' | 'add' | 'index' | 'rows' | 'removes' | 'other'

export interface MigrationStep {
  readonly kind: StepKind
  /** Undefined where the statement names none. */
  readonly table: string | undefined
}

export interface TableSize {
  readonly rows: number
  readonly bytes: number
}

/** Cautious figures for a small machine: what an index reads, and what an update writes, in a second. */
const INDEX_BYTES_PER_SECOND = 50_000_000
const ROWS_PER_SECOND = 20_000
const MOMENT_SECONDS = 0.05

/** In this order: the first that fits says what a statement is. */
const PATTERNS: readonly { readonly kind: StepKind; readonly pattern: RegExp }[] = [
  {
    kind: 'create',
    pattern: /^create (?:table|sequence|function|or replace function|type|extension)\b(?: if not exists)? ?([a-z_]*)/,
  },
  { kind: 'index', pattern: /^create (?:unique )?index\b.{0,200}? on ([a-z_]+)/ },
  {
    kind: 'removes',
    pattern:
      /^alter table (?:only )?([a-z_]+)\b.{0,400}?\b(?:rename|alter column [a-z_]+ (?:set data )?type|drop column)\b/,
  },
  { kind: 'removes', pattern: /^(?:drop (?:table|column|function|type|sequence)|truncate)(?: if exists)? ?([a-z_]*)/ },
  {
    kind: 'rows',
    pattern:
      /^alter table (?:only )?([a-z_]+)\b.{0,400}?\b(?:add (?:constraint|unique|primary|foreign|check)|set not null|validate)\b/,
  },
  { kind: 'add', pattern: /^(?:drop index(?: if exists)?|create trigger [a-z_]+ .{0,200}? on) ([a-z_]+)/ },
  // Settings of an index, and functions that tidy up behind one.
  { kind: 'add', pattern: /^(?:alter index|select) ([a-z_]+)/ },
  { kind: 'add', pattern: /^(?:alter table (?:only )?|comment on (?:table|column) )([a-z_]+)/ },
  { kind: 'rows', pattern: /^(?:update|insert into|delete from) ([a-z_]+)/ },
  { kind: 'rows', pattern: /^with\b.{0,2000}?\b(?:update|insert into|delete from) ([a-z_]+)/ },
]

export function stepsOf(sqlText: string): MigrationStep[] {
  return statementsOf(sqlText).map((statement) => {
    const plain = statement.replace(/\s+/g, ' ').trim().toLowerCase()
    for (const { kind, pattern } of PATTERNS) {
      const table = pattern.exec(plain)?.[1]
      if (table !== undefined) return { kind, table: table === '' ? undefined : table }
    }
    return { kind: 'other', table: undefined }
  })
}

/** Tables that a migration makes itself are empty: nothing in them takes time. */
export function estimateSeconds(steps: readonly MigrationStep[], sizes: ReadonlyMap<string, TableSize>): number {
  const total = steps.reduce((sum, step) => sum + secondsOf(step, sizes.get(step.table ?? '')), 0)
  return Math.round(total * 10) / 10
}

function secondsOf({ kind }: MigrationStep, size: TableSize | undefined): number {
  if (size === undefined) return MOMENT_SECONDS
  if (kind === 'index') return MOMENT_SECONDS + size.bytes / INDEX_BYTES_PER_SECOND
  return kind === 'rows' ? MOMENT_SECONDS + size.rows / ROWS_PER_SECOND : MOMENT_SECONDS
}

/** Tables of this database whose changes wait while the migration runs. */
export function heldTables(steps: readonly MigrationStep[], sizes: ReadonlyMap<string, TableSize>): string[] {
  const tables = steps.flatMap(({ kind, table }) => (kind === 'create' || table === undefined ? [] : [table]))
  return [...new Set(tables)].filter((table) => sizes.has(table)).toSorted()
}

/** A migration that takes something away is the end of the release before: its controls must be stopped first. */
export function isAdditive(steps: readonly MigrationStep[]): boolean {
  return steps.every(({ kind }) => kind !== 'removes')
}

/** Divides at semicolons outside of quotes, comments and dollar quotes. One pass over the text. */
export function statementsOf(sqlText: string): string[] {
  const statements: string[] = []
  let current = ''
  // Each token is a comment, a quoted text, a semicolon, or one character.
  for (const [token] of sqlText.matchAll(/--[^\n]*|'(?:[^']|'')*'|"[^"]*"|\$([a-z_]*)\$[^]*?\$\1\$|[^]/g)) {
    if (token.startsWith('--')) continue
    if (token !== ';') {
      current += token
      continue
    }
    if (current.trim() !== '') statements.push(current.trim())
    current = ''
  }
  if (current.trim() !== '') statements.push(current.trim())
  return statements
}
