/** When a reader who stands still is given up, and how large the pieces are that a connection is handed. */
import { expect, test } from 'vitest'
import { pieceBytes } from '../../../edge/accept/outgoing/room.ts'
import { judge, type ReaderCounters, type Need, type Verdict } from '../../../edge/accept/outgoing/stalled.ts'

const CALM: Need = { heldBytes: 500_000, isScarce: false, isCrowded: false }
const SCARCE: Need = { ...CALM, isScarce: true }
const CROWDED: Need = { ...CALM, isCrowded: true }
/** A 24th of 500,000 bytes. */
const PACE = 20_834

interface Case {
  readonly taken?: number
  /** Since the check before; undefined: not known. */
  readonly acknowledged?: number | undefined
  readonly stalledChecks?: number
  readonly need?: Need
  readonly verdict: Verdict
}

const cases: readonly (Case & { readonly name: string })[] = [
  { name: 'the kernel took enough', taken: 4096, acknowledged: 0, stalledChecks: 23, verdict: 'goes on' },
  { name: 'the kernel took a byte too little', taken: 4095, acknowledged: 0, verdict: 'stalled' },
  { name: 'enough was acknowledged', acknowledged: 4096, stalledChecks: 23, verdict: 'goes on' },
  { name: 'a byte too little was acknowledged', acknowledged: 4095, verdict: 'stalled' },
  { name: 'the 23rd check', acknowledged: 0, stalledChecks: 22, verdict: 'stalled' },
  { name: 'the 24th check', acknowledged: 0, stalledChecks: 23, verdict: 'give up' },
  { name: 'the 24th, where nothing is known', stalledChecks: 23, verdict: 'give up' },
  { name: 'scarce, first check', stalledChecks: 0, need: SCARCE, verdict: 'stalled' },
  { name: 'scarce, second check', acknowledged: 0, stalledChecks: 1, need: SCARCE, verdict: 'give up' },
  { name: 'scarce, nothing is known', stalledChecks: 1, need: SCARCE, verdict: 'stalled' },
  { name: 'crowded, second check', acknowledged: 0, stalledChecks: 1, need: CROWDED, verdict: 'give up' },
  { name: 'crowded, nothing is known', stalledChecks: 22, need: CROWDED, verdict: 'stalled' },
  { name: 'crowded, and takes enough', acknowledged: 4096, stalledChecks: 1, need: CROWDED, verdict: 'goes on' },
  {
    name: 'scarce, too slow for what it holds',
    acknowledged: 20_833,
    stalledChecks: 1,
    need: SCARCE,
    verdict: 'give up',
  },
  {
    name: 'scarce, fast enough for what it holds',
    acknowledged: PACE,
    stalledChecks: 1,
    need: SCARCE,
    verdict: 'goes on',
  },
  {
    name: 'scarce, holds little and takes little',
    acknowledged: 4096,
    stalledChecks: 1,
    need: { ...SCARCE, heldBytes: 1 },
    verdict: 'goes on',
  },
]

test.each(cases)('$name: $verdict', ({ taken = 0, acknowledged, stalledChecks = 0, need = CALM, verdict }) => {
  const before: ReaderCounters = {
    takenBytes: 1_000_000,
    acknowledgedBytes: acknowledged === undefined ? undefined : 900_000,
    stalledChecks,
  }
  const now = {
    takenBytes: before.takenBytes + taken,
    acknowledgedBytes: acknowledged === undefined ? undefined : 900_000 + acknowledged,
  }
  expect(judge(before, now, need)).toBe(verdict)
})

test.each([
  { isScarce: false, held: 0, piece: 524_288 },
  { isScarce: false, held: 500_000, piece: 24_288 },
  { isScarce: false, held: 516_097, piece: 8192 },
  { isScarce: false, held: 10_000_000, piece: 8192 },
  { isScarce: true, held: 0, piece: 8192 },
  { isScarce: true, held: 24_576, piece: 8192 },
  { isScarce: true, held: 24_577, piece: 1024 },
  { isScarce: true, held: 10_000_000, piece: 1024 },
])('scarce $isScarce, $held bytes held: a piece of $piece', ({ isScarce, held, piece }) => {
  expect(pieceBytes(isScarce, held)).toBe(piece)
})
