// The current and past versions of a book: past usage is charged by its version.
import { Card, CardBody, CardTitle } from '@patternfly/react-core';
import { useVersions, type Book } from '../../api/prices';
import type { Schemas } from '../../api/client';
import { useText } from '../../i18n';
import { shown, unitFor } from '../../lib/meter';
import { ErrorAlert } from '../../parts/error';
import { ObjectList, type Column } from '../../parts/list';
import { Time } from '../../parts/time';
import { meterName } from './rows';

type Version = Schemas['PriceBookSpec'];

export function Versions({ book }: { book: Book }) {
  const { t } = useText();
  const query = useVersions(book);
  if (query.data && query.data.items.length < 2) return null;
  return (
    <Card>
      <CardTitle component="h2">{t('price.versions')}</CardTitle>
      <CardBody className="basalt-stack">
        <ErrorAlert error={query.error} />
        <p className="basalt-note">{t('price.versionsHelp', { currency: book.spec.currency })}</p>
        <VersionList query={query} />
      </CardBody>
    </Card>
  );
}

/** VersionList shows the prices of each version. */
function VersionList({
  query,
}: {
  query: { data?: { items: Version[] }; error: unknown; isPending: boolean; refetch: () => unknown };
}) {
  const { t, has } = useText();
  const price = (p: Schemas['Price']) => {
    const unit = unitFor(p.meter, { priceMicros: p.priceMicros ?? 0, per: p.per });
    const value = unit && shown({ priceMicros: p.priceMicros ?? 0, per: p.per }, unit.per);
    return `${meterName(has, t, p.meter)}: ${value ?? `${p.priceMicros} / ${p.per}`}${unit ? ` ${t(unit.text)}` : ''}`;
  };
  const columns: Column<Version>[] = [
    { id: 'version', title: t('price.versionNumber'), value: (v) => v.version, cell: (v) => v.version ?? 1 },
    {
      id: 'from',
      title: t('price.versionFrom'),
      value: (v) => v.effectiveFrom,
      cell: (v) => (v.effectiveFrom ? <Time at={v.effectiveFrom} /> : t('price.versionFirst')),
    },
    {
      id: 'prices',
      title: t('price.meters'),
      share: 3,
      cell: (v) => (
        <ul className="basalt-plain">
          {(v.prices ?? []).map((p, i) => (
            <li key={i}>{price(p)}</li>
          ))}
        </ul>
      ),
    },
  ];
  return (
    <ObjectList
      label={t('price.versions')}
      columns={columns}
      query={query}
      keyOf={(v) => `${v.version} ${v.effectiveFrom}`}
      empty={null}
    />
  );
}
