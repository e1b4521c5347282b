/** Addresses that visitors of tests come from: no two of a run are the same, so that no test meets the limits of another. */

const PER_WORKER = 8192
/** 198.18.0.0/15 is set apart for measuring (RFC 2544). */
const NETWORK = { first: 198, second: 18 }

/** The process outlives the module, which each test file may load anew. */
const counters = globalThis as { dropwayTestAddresses?: number }

export function nextAddress(): string {
  const given = (counters.dropwayTestAddresses = (counters.dropwayTestAddresses ?? 0) + 1)
  const number = (Number(process.env['VITEST_POOL_ID'] ?? 0) % 8) * PER_WORKER + (given % PER_WORKER)
  return `${NETWORK.first}.${NETWORK.second}.${number >>> 8}.${number & 255}`
}
