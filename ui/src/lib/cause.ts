// The words for a cause that the API gives beside a text.
import type { Schemas } from '../api/client';
import type { Translation } from '../i18n';
import { formatBytes, formatPercent } from './format';

export type Cause = Schemas['Cause'];

/** Told is a text of the API with its cause. */
export interface Told {
  text: string;
  cause?: Cause | undefined;
}

/** told returns a text with its cause; the text is empty if there is none. */
export const told = (text?: string, cause?: Cause): Told => ({ text: text ?? '', cause });

/** causeIn returns the words for a cause in a language, or nothing if the text beside it says it. */
export function causeIn({ t, has, language }: Translation, cause?: Cause): string | undefined {
  if (!cause?.code || cause.code === 'plain') return undefined;
  const bytes = formatBytes(cause.bytes ?? 0, language);
  if (cause.code === 'no-room' && cause.missing === 'gpu')
    return t(cause.count ? 'cause.no-room.gpuShare' : 'cause.no-room.gpu', {
      model: cause.model || t('cause.anyGpu'),
      bytes,
      share: formatPercent(cause.count ?? 0, language),
    });
  const key = cause.code === 'no-room' && cause.missing ? `cause.no-room.${cause.missing}` : `cause.${cause.code}`;
  return has(key) ? t(key, { bytes, n: cause.count ?? 0 }) : undefined; // of a later version
}
