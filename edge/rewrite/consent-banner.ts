/**
 * The consent banner. Trackers that set cookies wait in `start()` until the visitor agrees. The answer is kept in
 * the browser for this drop (`dw-consent` in localStorage). A page can offer to change it with a link to
 * `#cookie-settings`, and hear of it by the event `dw:consent`.
 */
import { consentTexts } from './consent-texts.ts'
import type { Language } from './language.ts'
import { scriptValue } from './script-text.ts'

/** Beats the page's own style sheet by `!important` and a doubled id; a reset first, so that nothing leaks in. */
const SELF = '#dw-consent#dw-consent'
const RULES: readonly (readonly [selector: string, declarations: string])[] = [
  [
    SELF,
    'all:initial;position:fixed;z-index:2147483647;right:12px;bottom:calc(12px + env(safe-area-inset-bottom,0px));left:12px;box-sizing:border-box;max-width:420px;margin-left:auto;padding:20px;border:1px solid #d8e2df;border-radius:16px;background:#fff;color:#10211e;color-scheme:light;font:400 15px/1.5 system-ui,-apple-system,"Segoe UI",Roboto,"Helvetica Neue",Arial,sans-serif;box-shadow:0 1px 2px rgb(16 33 30/.06),0 16px 40px -12px rgb(16 33 30/.28)',
  ],
  [`${SELF} *`, 'all:unset;box-sizing:border-box'],
  [`${SELF} h2`, 'display:block;margin:0 0 4px;font-weight:650;font-size:16px;line-height:1.35'],
  [`${SELF} p`, 'display:block;margin:0 0 16px;color:#475955'],
  [`${SELF} div`, 'display:flex;flex-wrap:wrap;gap:10px'],
  [
    `${SELF} button`,
    'flex:1 1 8em;min-height:44px;padding:8px 14px;border:1px solid #748581;border-radius:10px;background:#fff;color:#10211e;font-weight:560;text-align:center;cursor:pointer',
  ],
  [`${SELF} button:hover`, 'border-color:#0a6864;background:#dcf0ec;color:#064a47'],
  [`${SELF} button:focus-visible`, 'outline:3px solid #0a6864;outline-offset:2px'],
]
const DARK_RULES: typeof RULES = [
  [SELF, 'border-color:#263835;background:#14201e;color:#e7f0ee;color-scheme:dark'],
  [`${SELF} p`, 'color:#a6b8b4'],
  [`${SELF} button`, 'border-color:#748984;background:#14201e;color:#e7f0ee'],
  [`${SELF} button:hover`, 'border-color:#62d2c5;background:#12332f;color:#9be9df'],
  [`${SELF} button:focus-visible`, 'outline-color:#62d2c5'],
]

export const consentCss = `${important(RULES)}@media (prefers-color-scheme:dark){${important(DARK_RULES)}}@media print{${SELF}{display:none!important}}`

export function important(rules: readonly (readonly [string, string])[]): string {
  return rules
    .map(
      ([selector, declarations]) =>
        `${selector}{${declarations
          .split(';')
          .map((declaration) => `${declaration}!important`)
          .join(';')}}`,
    )
    .join('')
}

/** `start`: statements that begin the trackers which wait. Expects `w` (window) and `load` in scope. */
export function consentScript(language: Language, start: string): string {
  const text = scriptValue({ ...consentTexts[language], lang: language })
  return `var d=w.document,key="dw-consent",t=${text},box=null,begun=false;
function read(){try{return w.localStorage.getItem(key)}catch(e){return null}}
function begin(){if(begun)return;begun=true;${start}}
function forget(){d.cookie.split(";").forEach(function(c){var n=c.split("=")[0].trim();if(/^(_ga|_fbp$|_fbc$|ph_)/.test(n))w.location.hostname.split(".").forEach(function(_,i,a){d.cookie=n+"=; Max-Age=0; Path=/; Domain="+a.slice(i).join(".")+"; Secure";d.cookie=n+"=; Max-Age=0; Path=/; Secure"})});w.location.reload()}
function choose(v){try{w.localStorage.setItem(key,v)}catch(e){}box.remove();box=null;w.dispatchEvent(new CustomEvent("dw:consent",{detail:v}));if(v==="granted")begin();else if(begun)forget()}
function make(n,text,into,set){var e=d.createElement(n);if(text)e.textContent=text;for(var k in set)e.setAttribute(k,set[k]);into.appendChild(e);return e}
function show(){if(box||!d.body||d.body.tagName.toUpperCase()!=="BODY")return;box=d.createElement("div");
var set={id:"dw-consent",role:"dialog","aria-modal":"false","aria-labelledby":"dw-consent-title","aria-describedby":"dw-consent-text",lang:t.lang,dir:"ltr",tabindex:"-1"};
for(var k in set)box.setAttribute(k,set[k]);
make("h2",t.title,box,{id:"dw-consent-title"});make("p",t.text,box,{id:"dw-consent-text"});
var row=make("div","",box);
make("button",t.reject,row,{type:"button"}).addEventListener("click",function(){choose("denied")});
make("button",t.accept,row,{type:"button"}).addEventListener("click",function(){choose("granted")});
d.body.appendChild(box);if(d.activeElement===d.body)box.focus({preventScroll:true})}
function ask(){if(w.location.hash==="#cookie-settings")show()}
function ready(){if(read()===null)show();ask()}
w.addEventListener("hashchange",ask);
if(read()==="granted")begin();
if(d.readyState==="loading")d.addEventListener("DOMContentLoaded",ready);else ready();
`
}
