import { expect, test } from 'vitest'
import { hashPassword, verifyPassword } from '../../../shared/secrets/password.ts'

test('a password matches its own hash and no other', async () => {
  const hash = await hashPassword('correct horse')
  expect(hash).toMatch(/^\$argon2id\$v=19\$m=19456,t=2,p=1\$[A-Za-z0-9+/]{22}\$[A-Za-z0-9+/]{43}$/)
  expect(await verifyPassword('correct horse', hash)).toBe(true)
  expect(await verifyPassword('Correct horse', hash)).toBe(false)
  expect(await verifyPassword('', hash)).toBe(false)
  expect(await hashPassword('correct horse')).not.toBe(hash)
})

test('the same letters from another keyboard are the same password', async () => {
  expect(await verifyPassword('cafe\u0301', await hashPassword('caf\u00e9'))).toBe(true)
})

test('a hash made elsewhere with other parameters is understood', async () => {
  // `echo -n password | argon2 somesalt -id -t 2 -k 256 -p 1`, as published in the reference implementation's tests.
  const phc = '$argon2id$v=19$m=256,t=2,p=1$c29tZXNhbHQ$nf65EOgLrQMR/uIPnA4rEsF5h7TKyQwu9U1bMCHGi/4'
  expect(await verifyPassword('password', phc)).toBe(true)
  expect(await verifyPassword('passwore', phc)).toBe(false)
})

test.each([
  '',
  'plain',
  '$argon2i$v=19$m=256,t=2,p=1$c29tZXNhbHQ$nf65EOgLrQMR/uIPnA4rEsF5h7TKyQwu9U1bMCHGi/4',
  '$argon2id$v=19$m=9999999,t=2,p=1$c29tZXNhbHQ$nf65EOgLrQMR/uIPnA4rEsF5h7TKyQwu9U1bMCHGi/4',
  '$argon2id$v=19$m=256,t=99,p=1$c29tZXNhbHQ$nf65EOgLrQMR/uIPnA4rEsF5h7TKyQwu9U1bMCHGi/4',
  '$argon2id$v=19$m=256,t=2,p=0$c29tZXNhbHQ$nf65EOgLrQMR/uIPnA4rEsF5h7TKyQwu9U1bMCHGi/4',
])('a stored text that is no affordable hash matches nothing: %s', async (phc) => {
  expect(await verifyPassword('password', phc)).toBe(false)
})

test('a flood is turned away instead of queued without end, and the queue recovers', async () => {
  const phc = '$argon2id$v=19$m=256,t=2,p=1$c29tZXNhbHQ$nf65EOgLrQMR/uIPnA4rEsF5h7TKyQwu9U1bMCHGi/4'
  const outcomes = await Promise.allSettled(Array.from({ length: 200 }, () => verifyPassword('password', phc)))
  const refused = outcomes.filter((outcome) => outcome.status === 'rejected')
  expect(refused.length).toBe(200 - 2 - 64)
  expect(refused[0]).toMatchObject({ reason: { status: 503 } })
  expect(await verifyPassword('password', phc)).toBe(true)
})
