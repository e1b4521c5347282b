/**
 * A control that is about to stop says so at /healthz and goes on answering, so that edges choose another. The notice is
 * longer than edges believe what they were told before, with time for what they have just sent on a busy machine.
 */
export const READY_BELIEVED_MS = 250
export const CLOSE_NOTICE_MS = 1000
