/** Figures in the text format of Prometheus (version 0.0.4). */

export interface Sample {
  readonly labels?: Readonly<Record<string, string>>
  readonly value: number
  /** Ends the name of a part of a histogram: `_bucket`, `_sum` or `_count`. */
  readonly suffix?: string
}

export interface Family {
  readonly name: string
  readonly help: string
  readonly type: 'counter' | 'gauge' | 'histogram'
  readonly samples: readonly Sample[]
}

export const EXPOSITION_TYPE = 'text/plain; version=0.0.4; charset=utf-8'

export function gauge(name: string, help: string, value: number): Family {
  return { name, help, type: 'gauge', samples: [{ value }] }
}

/** A family without a sample is left out: an absent figure says that it is not known. */
export function writeExposition(families: readonly Family[]): string {
  return families
    .filter(({ samples }) => samples.length > 0)
    .map(({ name, help, type, samples }) => {
      const lines = samples.map(({ labels, value, suffix = '' }) => `${name}${suffix}${labelled(labels)} ${value}\n`)
      return `# HELP ${name} ${help}\n# TYPE ${name} ${type}\n${lines.join('')}`
    })
    .join('\n')
}

function labelled(labels: Sample['labels']): string {
  const pairs = Object.entries(labels ?? {}).map(([name, value]) => `${name}="${escaped(value)}"`)
  return pairs.length === 0 ? '' : `{${pairs.join(',')}}`
}

function escaped(value: string): string {
  return value.replaceAll('\\', '\\\\').replaceAll('"', '\\"').replaceAll('\n', '\\n')
}
