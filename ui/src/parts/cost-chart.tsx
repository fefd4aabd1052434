// Costs by day as a chart, with a legend.
import type { CostBy } from '../api/costs';
import { useText, type Translation } from '../i18n';
import type { CostRow, CostStack } from '../lib/costs';
import { formatMicros } from '../lib/format';
import { PartKey, Stacked, stackColors } from './stacked';

/** How many parts a chart of costs shows, including all others. */
export const shownParts = stackColors;

/** nameOf returns the name of a row: a meter's is translated, those of resources and projects are their own. */
export function nameOf(r: CostRow, by: CostBy, { t, has }: Pick<Translation, 't' | 'has'>): string {
  if (r.key === '') return t('cost.others');
  const key = `meter.${r.key}`;
  return by === 'meter' && has(key) ? t(key) : r.name || r.key;
}

const shortDays = (days: string[], language: string) => {
  const format = new Intl.DateTimeFormat(language, { day: 'numeric', month: 'short', timeZone: 'UTC' });
  return days.map((d) => format.format(new Date(d)));
};

export function CostChart({ stack, by, currency }: { stack: CostStack; by: CostBy; currency: string }) {
  const text = useText();
  const { t, language } = text;
  const money = (micros: number) => formatMicros(Math.round(micros), currency, language);
  return (
    <>
      <Stacked
        title={t('cost.byDay')}
        days={shortDays(stack.days, language)}
        parts={stack.parts.map((p) => ({ key: p.key, label: nameOf(p, by, text), values: p.values }))}
        format={money}
      />
      <ul className="basalt-legend">
        {stack.parts.map((p, i) => (
          <li key={p.key}>
            <PartKey index={i} /> {nameOf(p, by, text)} <span className="basalt-number">{money(p.micros)}</span>
          </li>
        ))}
      </ul>
    </>
  );
}
