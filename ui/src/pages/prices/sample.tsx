// What a sample machine costs in a month by a price book, and by its edited prices. The server calculates all
// amounts.
import { Card, CardBody, CardTitle } from '@patternfly/react-core';
import { useState, type ReactNode } from 'react';
import { useSettled, useSlices } from '../../api/offers';
import { useQuote, type Book } from '../../api/prices';
import { useFlavors } from '../../api/queries';
import { useText } from '../../i18n';
import { formatMicros } from '../../lib/format';
import { kindsOf } from '../../lib/offer';
import { classesOf, firstClass, quotable, quoteOf, typical, type SampleMachine } from '../../lib/sample-machine';
import { ErrorAlert } from '../../parts/error';
import { SelectField, TextField } from '../../parts/text-field';
import { meterName } from './rows';

export function Sample({ book, draft }: { book: Book; draft?: Book['spec'] }) {
  const { t } = useText();
  const flavors = useFlavors().data?.items ?? [];
  const kinds = kindsOf(useSlices().data?.items ?? [], 'standard');
  const [changed, change] = useState<Partial<SampleMachine>>({});
  const machine: SampleMachine = {
    flavor: typical(flavors)?.meta.id ?? '',
    gpu: kinds[0]?.id ?? '',
    share: '25',
    diskGib: '100',
    storageClass: firstClass(book.spec),
    hours: '720',
    gpuPercent: '50',
    ...changed,
  };
  const set = (name: keyof SampleMachine) => (v: string) => change((m) => ({ ...m, [name]: v }));
  const request = useSettled(JSON.stringify(quoteOf(machine, kinds, draft && quotable(draft))), 400);
  const quote = useQuote(book, request);
  const number = (id: string, name: keyof SampleMachine, label: string) => (
    <TextField id={id} type="number" label={label} value={machine[name]} onChange={set(name)} />
  );
  return (
    <Card>
      <CardTitle component="h2">{t('price.sample')}</CardTitle>
      <CardBody className="basalt-stack">
        <p className="basalt-note">{t('price.sampleHelp')}</p>
        <div className="basalt-columns basalt-narrow">
          <SelectField
            id="sample-flavor"
            label={t('new.flavor')}
            value={machine.flavor}
            onChange={set('flavor')}
            options={[...flavors.map((f): [string, string] => [f.meta.id ?? '', f.meta.name]), ['', t('common.none')]]}
          />
          <SelectField
            id="sample-gpu"
            label="GPU"
            value={machine.gpu}
            onChange={set('gpu')}
            options={[...kinds.map((k): [string, string] => [k.id, `${k.model} (${k.pool})`]), ['', t('common.none')]]}
          />
          {machine.gpu && number('sample-share', 'share', t('price.sampleShare'))}
          {machine.gpu && number('sample-use', 'gpuPercent', t('price.sampleUse'))}
          {number('sample-disk', 'diskGib', t('price.sampleDisk'))}
          {classesOf(book.spec).length > 0 && (
            <SelectField
              id="sample-class"
              label={t('price.sampleClass')}
              value={machine.storageClass}
              onChange={set('storageClass')}
              options={[['', t('common.none')], ...classesOf(book.spec).map((c): [string, string] => [c, c])]}
            />
          )}
          {number('sample-hours', 'hours', t('price.sampleHours'))}
        </div>
        <ErrorAlert error={quote.error} />
        {quote.data && <Costs quote={quote.data} />}
        {quote.data && <Ends quote={quote.data} gpu={Boolean(machine.gpu)} />}
      </CardBody>
    </Card>
  );
}

type Quote = NonNullable<ReturnType<typeof useQuote>['data']>;
type Amounts = (was: number, is: number) => ReactNode;

/** useTable returns the head of a table of costs, and the amounts of a row: now, edited, and the difference. */
function useTable(q: Quote): { head: (first: string, title: string) => ReactNode; amounts: Amounts } {
  const { t, language } = useText();
  const money = (micros: number) => formatMicros(micros, q.currency, language);
  const titles = (title: string) =>
    q.changed ? [t('price.before'), t('price.after'), t('price.difference')] : [title];
  return {
    head: (first, title) => (
      <thead>
        <tr>
          <th scope="col">{first}</th>
          {titles(title).map((text) => (
            <th key={text} scope="col" className="basalt-end">
              {text}
            </th>
          ))}
        </tr>
      </thead>
    ),
    amounts: (was, is) => (
      <>
        <td>{money(was)}</td>
        {q.changed && <td>{money(is)}</td>}
        {q.changed && <td>{money(is - was)}</td>}
      </>
    ),
  };
}

/** Ends is the least and the most that the machine can cost, by its use of the GPU. */
function Ends({ quote: q, gpu }: { quote: Quote; gpu: boolean }) {
  const { t } = useText();
  const { head, amounts } = useTable(q);
  const line = (period: 'hour' | 'month', end: 'reservedMicros' | 'fullUseMicros', text: string) => (
    <tr>
      <th scope="row">{text}</th>
      {amounts(q.current[period][end], q.changed?.[period][end] ?? 0)}
    </tr>
  );
  return (
    <table className="basalt-prices" aria-label={t('price.sampleEnds')}>
      {head(t('price.sampleEnds'), t('price.amount'))}
      <tbody>
        {gpu && line('hour', 'reservedMicros', t('price.hourReserved'))}
        {line('hour', 'fullUseMicros', t(gpu ? 'price.hourFull' : 'price.hour'))}
        {gpu && line('month', 'reservedMicros', t('price.monthReserved'))}
        {line('month', 'fullUseMicros', t(gpu ? 'price.monthFull' : 'price.month'))}
      </tbody>
    </table>
  );
}

function Costs({ quote: q }: { quote: Quote }) {
  const { t, has } = useText();
  const { head, amounts } = useTable(q);
  const of = (meters: { meter: string; amountMicros: number }[] | undefined, meter: string) =>
    meters?.find((m) => m.meter === meter)?.amountMicros ?? 0;
  const meters = [...new Set([...q.current.meters, ...(q.changed?.meters ?? [])].map((m) => m.meter))];
  return (
    <table className="basalt-prices" aria-label={t('price.sample')}>
      {head(t('price.meter'), t('price.month'))}
      <tbody>
        {meters.map((m) => (
          <tr key={m}>
            <th scope="row">{meterName(has, t, m)}</th>
            {amounts(of(q.current.meters, m), of(q.changed?.meters, m))}
          </tr>
        ))}
      </tbody>
      <tfoot>
        <tr>
          <th scope="row">{t('cost.total')}</th>
          {amounts(q.current.totalMicros, q.changed?.totalMicros ?? 0)}
        </tr>
      </tfoot>
    </table>
  );
}
