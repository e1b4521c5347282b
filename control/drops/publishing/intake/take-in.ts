/** The one way in for content, wherever it comes from: an intake is filled, then finished, and leaves nothing behind. */
import { Readable } from 'node:stream'
import type { Intake, PreparedVersion, Publishing } from '../contract.ts'

export type Limits = Parameters<Publishing['receive']>[0]
export type FinishOptions = NonNullable<Parameters<Intake['finish']>[0]>

type Fill<Options> = (intake: Intake) => Promise<Options>

/** `fill` adds the files and says how to finish; undefined when there is nothing to publish. */
export async function receiveContent(
  publishing: Pick<Publishing, 'receive'>,
  limits: Limits,
  fill: Fill<FinishOptions>,
): Promise<PreparedVersion>
export async function receiveContent(
  publishing: Pick<Publishing, 'receive'>,
  limits: Limits,
  fill: Fill<FinishOptions | undefined>,
): Promise<PreparedVersion | undefined>
export async function receiveContent(
  publishing: Pick<Publishing, 'receive'>,
  limits: Limits,
  fill: Fill<FinishOptions | undefined>,
): Promise<PreparedVersion | undefined> {
  const intake = publishing.receive(limits)
  try {
    const options = await fill(intake)
    return options && (await intake.finish(options))
  } finally {
    await intake.abort()
  }
}

/** One page or Markdown document that is in memory already. */
export function receiveText(
  publishing: Pick<Publishing, 'receive'>,
  limits: Limits,
  text: { filename: string; content: string; title?: string | undefined },
): Promise<PreparedVersion> {
  return receiveContent(publishing, limits, async (intake) => {
    await intake.addSingle(text.filename, Readable.from([Buffer.from(text.content)]), { title: text.title })
    return { title: text.title }
  })
}
