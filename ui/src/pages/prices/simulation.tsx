// Past usage at a book's prices.
import { Button, Card, CardBody, CardTitle } from '@patternfly/react-core';
import { useState } from 'react';
import type { Schemas } from '../../api/client';
import { useSimulation, type Book } from '../../api/prices';
import { useText } from '../../i18n';
import { formatMicros } from '../../lib/format';
import { month, monthName } from '../../lib/period';
import { ObjectList, type Column } from '../../parts/list';
import { SelectField } from '../../parts/text-field';

type Item = Schemas['SimulatedInvoice'];

export function Simulation({ book, unsaved }: { book: Book; unsaved: boolean }) {
  const { t, language } = useText();
  const [months] = useState(() => Array.from({ length: 12 }, (_, i) => month(new Date(), i)));
  const [chosen, choose] = useState('1');
  const [asked, ask] = useState('');
  const period = months[Number(chosen)] ?? months[0]!;
  const query = useSimulation(book, period, asked === period.from);
  const { currency } = book.spec;
  const money = (micros: number, of: string) => (
    <span className="basalt-number">{formatMicros(micros, of, language)}</span>
  );
  const columns: Column<Item>[] = [
    {
      id: 'organization',
      title: t('signIn.organization'),
      cell: (i) => (
        <>
          {i.name}
          {i.note && <div className="basalt-note">{i.note}</div>}
        </>
      ),
    },
    { id: 'byThis', title: t('price.byThis'), cell: (i) => money(i.totalMicros, currency) },
    { id: 'byOwn', title: t('price.byOwn'), cell: (i) => (i.ownCurrency ? money(i.ownMicros, i.ownCurrency) : '–') },
    {
      id: 'difference',
      title: t('price.difference'),
      cell: (i) => (i.ownCurrency === currency ? money(i.totalMicros - i.ownMicros, currency) : '–'),
    },
  ];
  return (
    <Card>
      <CardTitle component="h2">{t('price.simulation')}</CardTitle>
      <CardBody className="basalt-stack">
        <p className="basalt-note">{t('price.simulationHelp', { month: monthName(period, language) })}</p>
        {unsaved && <p>{t('price.simulationUnsaved')}</p>}
        <SelectField
          id="simulation-month"
          label={t('usage.month')}
          value={chosen}
          onChange={choose}
          options={months.map((m, i) => [String(i), monthName(m, language)])}
        />
        <div>
          <Button
            variant="secondary"
            isLoading={query.isFetching}
            onClick={() => (ask(period.from), asked === period.from && void query.refetch())}
          >
            {t('price.simulate')}
          </Button>
        </div>
        {asked === period.from && (
          <>
            <ObjectList
              label={t('price.simulation')}
              columns={columns}
              query={query}
              keyOf={(i) => i.organization}
              empty={<p className="basalt-note">{t('price.simulationEmpty')}</p>}
            />
            {query.data && query.data.items.length > 0 && (
              <p role="status">
                <strong>
                  {t('price.total', { amount: formatMicros(query.data.totalMicros, query.data.currency, language) })}
                </strong>
              </p>
            )}
          </>
        )}
      </CardBody>
    </Card>
  );
}
