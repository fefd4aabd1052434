// The words for an alert: what is wrong, and what to do.
import { type Alert } from './alert';
import { tellIn, told } from './cause';
import { formatBytes, formatPercent, formatTime } from './format';
import type { Key, Translation } from '../i18n';

type Params = NonNullable<Alert['params']>;
type Problem = Alert['code'] | NonNullable<Params['variant']>;

/** textOf and hintOf return keys of words; the compiler checks that there are some for each code and variant. */
const textOf = (problem: Problem): Key => `alert.text.${problem}`;
const hintOf = (problem: Problem): Key => `alert.hint.${problem}`;

const has = ({ code, params }: Alert, words: Translation) =>
  ([params?.variant, code] as (Problem | undefined)[]).find((p) => p && words.has(textOf(p))); // or of a later version

function namesIn({ t, has }: Translation, { names = [], count = 0 }: Params): string {
  const known = names.map((name) => {
    const check = `hardware.${name}`;
    return has(check) ? t(check) : name;
  });
  const more = names.length > 0 && count > names.length ? ` ${t('alert.more', { n: count - names.length })}` : '';
  return known.join(', ') + more;
}

/** excessIn returns what of a GPU is allocated beyond its pool's limits. */
function excessIn({ t, language }: Translation, p: Params): string {
  const { bytes = 0, limitBytes = 0, percent = 0, count = 0, limit = 0 } = p;
  const vram = { bytes: formatBytes(bytes, language), limit: formatBytes(limitBytes, language) };
  return [
    bytes > 0 && t('alert.promised.vram', vram),
    percent > 0 && t('alert.promised.time', { share: formatPercent(percent, language) }),
    count > 0 && t('alert.promised.count', { n: count, limit }),
  ]
    .filter(Boolean)
    .join('; ');
}

function valuesIn(words: Translation, { code, name = '', params = {} }: Alert) {
  const { t, language } = words;
  const until = formatTime(params.until, language);
  return {
    name,
    names: namesIn(words, params),
    n: (code === 'node.clock' ? params.seconds : params.count) ?? 0,
    limit: params.limit ?? 0,
    percent: formatPercent(params.percent ?? 0, language),
    until: code === 'payment.disputed' && until ? t('alert.until', { at: until }) : until,
    version: params.version ?? '',
    what: excessIn(words, params),
  };
}

/** sentence puts a text behind words, in brackets, since it may be in English. */
const sentence = (text: string, detail: string) => (detail ? `${text} (${detail})` : text);

/** messageIn returns what is wrong in a language, with the reason that the component that noticed it reports. */
export function messageIn(words: Translation, a: Alert): string {
  const problem = has(a, words);
  if (!problem) return tellIn(words, told(a.message), true);
  const reason = told(a.reason, a.cause);
  const [text, why] = [words.t(textOf(problem), valuesIn(words, a)), tellIn(words, reason, true)];
  return why === reason.text ? sentence(text, why) : `${text} ${why}`;
}

/** adviceIn returns what to do in a language, with what the component that noticed the problem recommends. */
export function adviceIn(words: Translation, a: Alert): string {
  const problem = has(a, words);
  if (!problem) return tellIn(words, told(a.hint), true);
  return sentence(words.t(hintOf(problem), valuesIn(words, a)), a.params?.advice ?? '');
}
