/** One reading of the header for the API and for MCP. */
import { expect, test } from 'vitest'
import { bearerTokenOf } from '../../../control/people/access/bearer.ts'

test.each([
  ['Bearer dw_x', 'dw_x'],
  ['bearer dw_x', 'dw_x'],
  ['BEARER   dw_x', 'dw_x'],
  [' Bearer dw_x ', 'dw_x'],
  ['Bearer dw_x\t', 'dw_x'],
  ['Bearer', undefined],
  ['Bearer ', undefined],
  ['Bearer dw_x dw_y', undefined],
  ['Bearer\tdw_x', undefined],
  ['Bearerdw_x', undefined],
  ['Basic dw_x', undefined],
  ['x Bearer dw_x', undefined],
  ['', undefined],
  [undefined, undefined],
])('%j carries %j', (header, token) => {
  expect(bearerTokenOf(header)).toBe(token)
})
