/** Runs after many wrong passwords: solves what the server asks while the person types, and sends the answer along. */
import { solveChallenge } from './proof-of-work.ts'

const notice = document.querySelector<HTMLElement>('[data-challenge]')
const challengeText = notice?.dataset['challenge']
const form = notice?.closest('form')
const proof = form?.querySelector<HTMLInputElement>('input[name=proof]')

if (notice && challengeText !== undefined && form && proof) {
  const solving = solveChallenge(challengeText, Number(notice.dataset['bits'])).then((answer) => {
    proof.value = answer
    notice.textContent = 'Done. You can go on.'
  })
  form.addEventListener('submit', (event) => {
    if (proof.value !== '') return
    event.preventDefault()
    notice.textContent = 'Your browser is still calculating. The form is sent as soon as it is done.'
    void solving.then(() => form.submit())
  })
}
