/**
 * What an assistant pays: tokens of tools/list and of twelve tasks, counted with the tokenizer of a widely used model.
 * Ends with an error when a task is not done in two calls, or the list is over its budget.
 */
import { countTokens } from 'gpt-tokenizer'
import { StreamableHTTPClientTransport } from '@modelcontextprotocol/client'
import { connectWithToken, newClient } from '../../test/support/mcp-client.ts'
import { webFetch } from '../../test/support/oauth-client.ts'
import { MAX_CALLS, runTask, TASKS, type TaskResult } from '../../test/support/mcp-tasks.ts'
import { startStack, type Stack } from '../../test/support/stack.ts'
import type { BenchValues } from '../benches.ts'
import { createProgress } from '../progress.ts'
import type { Results } from '../results.ts'

const MAX_LIST_TOKENS = 1800
/** The endpoint without an account has one tool. */
const MAX_ANONYMOUS_TOKENS = 500

export async function run(_told: BenchValues<'mcp'>, kept: Results): Promise<void> {
  const progress = createProgress()
  progress.show('starting a stack')
  const stack = await startStack()
  try {
    const client = await connectWithToken(stack, (await stack.createAccount('business')).token, 'modern')
    const { tools } = await client.listTools()
    const listTokens = countTokens(JSON.stringify({ tools }))
    const anonymousTokens = await countAnonymously(stack)
    const results: TaskResult[] = []
    for (const task of TASKS) {
      progress.show(`task ${results.length + 1} of ${TASKS.length}`)
      results.push(await runTask(stack, client, task))
    }
    progress.clear()
    const table = tableOf(tools.length, { listTokens, anonymousTokens }, results)
    console.log(table)
    kept.keepText('mcp.md', table)
    const failed = results.filter(({ calls, problems }) => calls > MAX_CALLS || problems.length > 0)
    kept.judge({ row: 'tokens of tools/list', figure: listTokens, unit: '', bar: MAX_LIST_TOKENS })
    kept.judge({ row: 'the same without an account', figure: anonymousTokens, unit: '', bar: MAX_ANONYMOUS_TOKENS })
    kept.judge({ row: 'tasks not done in two calls', figure: failed.length, unit: '', bar: 0 })
  } finally {
    await stack.stop()
  }
}

/** What tools/list costs at the endpoint without an account. */
async function countAnonymously(stack: Stack): Promise<number> {
  const client = newClient('modern')
  const address = new URL(`${stack.baseUrl}/mcp/anonymous`)
  await client.connect(new StreamableHTTPClientTransport(address, { fetch: webFetch(stack) }))
  const { tools } = await client.listTools()
  return countTokens(JSON.stringify({ tools }))
}

function tableOf(
  toolCount: number,
  { listTokens, anonymousTokens }: { listTokens: number; anonymousTokens: number },
  results: readonly TaskResult[],
): string {
  const rows = results.map(
    ({ task, calls, callTokens, answerTokens, problems }) =>
      `| ${task} | ${calls} | ${callTokens} | ${answerTokens} | ${problems.length === 0 ? 'done' : problems.join('; ')} |`,
  )
  return [
    '# MCP: what an assistant pays',
    '',
    `\`npm run bench:mcp\`, tokens by gpt-tokenizer (o200k_base). tools/list: **${listTokens}** tokens for ${toolCount} tools (budget ${MAX_LIST_TOKENS}); without an account **${anonymousTokens}** (budget ${MAX_ANONYMOUS_TOKENS}).`,
    '',
    `| task (at most ${MAX_CALLS} calls) | calls | tokens written | tokens read | |`,
    '|---|---|---|---|---|',
    ...rows,
    '',
  ].join('\n')
}
