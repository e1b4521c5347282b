/** The port between a proof and the DNS: what is to stand where, and who puts it there. */

/** A TXT record and where it stands: `name` is the end of the chain of CNAMEs that begins at `asked`. */
export interface ProofRecord {
  readonly asked: string
  readonly name: string
  readonly value: string
}

/** Puts records where a CA finds them. */
export interface RecordKeeper {
  /** May it write records at this name? Asked for names that could be proven over HTTP, too. Never rejects. */
  covers(name: string): Promise<boolean>
  /** Resolves when the record was taken; says in its error what the operator can do. */
  present(record: ProofRecord): Promise<void>
  /** Takes the record away; one that is not there is no error. */
  remove(record: ProofRecord): Promise<void>
}
