// Formats measured values.
import type { Unit } from './chart';
import { formatBytes, formatPercent } from './format';

export function formatSample(v: number, unit: Unit, language: string): string {
  switch (unit) {
    case 'percent':
      return formatPercent(v, language);
    case 'bytes':
      return formatBytes(v, language);
    case 'bytes-per-second':
      return `${formatBytes(v, language)}/s`;
    case 'requests-per-second':
      return `${new Intl.NumberFormat(language, { maximumFractionDigits: 1 }).format(v)}/s`;
  }
}
