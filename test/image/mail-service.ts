/** A mail server as a program, on port 1025 of wherever it runs: it takes every mail, and keeps none. */
import { SMTPServer } from 'smtp-server'

const server = new SMTPServer({
  disabledCommands: ['AUTH', 'STARTTLS'],
  disableReverseLookup: true,
  onData(stream, _session, callback) {
    stream.on('end', callback).resume()
  },
})
server.listen(1025, '0.0.0.0', () => process.stdout.write('ready\n'))
