/** A mailer in a process of its own, to be killed: `node mailer-process.ts <database url> <smtp url> <secret key>`. */
import { openDatabase } from '../../control/ground/database/sql.ts'
import { createMailer } from '../../control/ground/mail/mailer.ts'
import { createSmtpSink } from '../../control/ground/mail/sinks.ts'
import { systemClock } from '../../shared/running/clock.ts'
import { silentLog } from '../../shared/running/log.ts'
import { createSecrets } from '../../shared/secrets/secrets.ts'

const [databaseUrl, smtpUrl, secretKey] = process.argv.slice(2)
createMailer({
  sql: openDatabase({ url: databaseUrl!, maxConnections: 4 }),
  sink: createSmtpSink(smtpUrl!),
  secrets: createSecrets(secretKey!),
  clock: systemClock,
  log: silentLog,
  mailFrom: 'Dropway <no-reply@dropway.test>',
  // One at a time, so that the test knows what the process is doing when it kills it.
  senders: 1,
}).start()
