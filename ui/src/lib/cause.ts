// The words for a cause that the API gives beside a text.
import type { CauseText } from '../api/cause-text';
import type { Schemas } from '../api/client';
import type { Key, Translation } from '../i18n';
import { formatBytes, formatPercent } from './format';

export type Cause = Schemas['Cause'];

/** Told is a text of the API with its cause. */
export interface Told {
  text: string;
  cause?: Cause | undefined;
}

/** told returns a text with its cause; the text is empty if there is none. */
export const told = (text?: CauseText | string, cause?: Cause): Told => ({
  text: (text as string | undefined) ?? '',
  cause,
});

/** keyOf returns the key of a code's words; the compiler checks that there are some for each code. */
const keyOf = (code: NonNullable<Cause['code']>): Key => `cause.${code}`;

/** causeIn returns the words for a cause in a language, or nothing if it has no code that is known. */
export function causeIn({ t, has, language }: Translation, cause?: Cause): string | undefined {
  if (!cause?.code) return undefined;
  const values = { bytes: formatBytes(cause.bytes ?? 0, language), n: cause.count ?? 0, name: cause.name ?? '' };
  if (cause.code === 'no-room' && cause.missing === 'gpu')
    return t(cause.count ? 'cause.no-room.gpuShare' : 'cause.no-room.gpu', {
      ...values,
      model: cause.model || t('cause.anyGpu'),
      share: formatPercent(cause.count ?? 0, language),
    });
  if (cause.code === 'no-room' && cause.missing) return t(`cause.no-room.${cause.missing}`, values);
  const key = keyOf(cause.code);
  return has(key) ? t(key, values) : undefined; // of a later version
}

/**
 * tellIn returns the words for a text and its cause. Operators read also the text. Others read the text only if the
 * cause has a code of a later version: without a cause it is not for them.
 */
export function tellIn(words: Translation, { text, cause }: Told, operator: boolean): string {
  if (!text) return '';
  const sentence = causeIn(words, cause);
  if (operator) return sentence ? `${sentence} (${text})` : text;
  return sentence ?? (cause?.code || cause?.plain ? text : words.t('cause.internal'));
}
