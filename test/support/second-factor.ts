/** A person's generator of codes, by RFC 4226, 4648 and 6238 and nothing of ours. */
import { createHmac } from 'node:crypto'
import type { FormBrowser } from './form-browser.ts'

/** RFC 4648 §6. */
export function fromBase32(text: string): Buffer {
  const bits = [...text].map((letter) =>
    'ABCDEFGHIJKLMNOPQRSTUVWXYZ234567'.indexOf(letter).toString(2).padStart(5, '0'),
  )
  return Buffer.from(
    bits
      .join('')
      .match(/.{8}/g)!
      .map((byte) => parseInt(byte, 2)),
  )
}

function codeOf(secret: Buffer, nowMs: number): string {
  const counter = Buffer.alloc(8)
  counter.writeBigUInt64BE(BigInt(Math.floor(nowMs / 30_000)))
  const digest = createHmac('sha1', secret).update(counter).digest()
  return String((digest.readUInt32BE(digest.at(-1)! & 15) & 0x7fffffff) % 1_000_000).padStart(6, '0')
}

/** Turns a generator on as a person does; the recovery codes are good once each, whatever the time is. */
export async function enrolGenerator(browser: FormBrowser): Promise<string[]> {
  const begun = (await browser.send('/account/totp', {}, '/account/totp/begin')).text()
  const secret = fromBase32(/id="totp-secret">([A-Z2-7]+)</.exec(begun)![1]!)
  const shown = await browser.send('/account/totp', { code: codeOf(secret, Date.now()) })
  return [...shown.text().matchAll(/<li>([a-z2-7]{5}-[a-z2-7]{5})<\/li>/g)].map(([, code]) => code!)
}
