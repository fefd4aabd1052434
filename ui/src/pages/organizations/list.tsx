// The customers: their state, price book and balance.
import { Button } from '@patternfly/react-core';
import { BuildingIcon } from '@patternfly/react-icons';
import { useMemo, useState } from 'react';
import { Link, useLocation } from 'wouter';
import {
  changeOrganization,
  deleteOrganization,
  ownsOrganization,
  resumeOrganization,
  suspendOrganization,
  usePriceBooks,
  type Organization,
} from '../../api/customers';
import { useWallet } from '../../api/queries';
import { may, type Session } from '../../api/session';
import { CreateOrganization } from '../../forms/organization';
import { useText } from '../../i18n';
import { formatMicros } from '../../lib/format';
import { reasonOf, standingOf } from '../../lib/organization';
import type { Bulk } from '../../parts/list-bulk';
import { Empty, ObjectList, useListing, type Column } from '../../parts/list';
import { PageBody } from '../../parts/page';
import { StandingLabel } from '../../parts/standing';
import { collections } from '../../api/collection';

// Each row requests its organization's balance, which the server calculates each time.

function Money({ id, what }: { id: string; what: 'unbilledMicros' | 'balanceMicros' }) {
  const { t, language } = useText();
  const wallet = useWallet(id, true);
  if (wallet.isError)
    return (
      <span className="basalt-note" title={wallet.error.message}>
        {t('cust.noMoney')}
      </span>
    );
  if (!wallet.data) return <>…</>;
  const { [what]: micros, currency } = wallet.data;
  const amount = formatMicros(Math.abs(micros), currency, language);
  return <span className="basalt-number">{micros < 0 ? t('cust.owes', { amount }) : amount}</span>;
}

function useBulk(session: Session): Bulk<Organization>[] {
  const { t } = useText();
  return useMemo(() => {
    const owns = (o: Organization) => ownsOrganization(session, o) && !o.meta.deletedAt;
    return [
      {
        id: 'suspend',
        text: t('cust.suspend'),
        help: t('cust.suspendHelp'),
        danger: true,
        note: t('cust.suspendReason'),
        applies: (o) => owns(o) && !o.spec.suspended,
        run: (o, reason) => changeOrganization(o, suspendOrganization(reason)),
      },
      {
        id: 'resume',
        text: t('cust.resume'),
        help: t('cust.resumeHelp'),
        applies: (o) => owns(o) && Boolean(o.spec.suspended),
        run: (o) => changeOrganization(o, resumeOrganization),
      },
      {
        id: 'delete',
        text: t('cust.delete'),
        help: t('cust.deleteHelp'),
        danger: true,
        applies: owns,
        run: deleteOrganization,
      },
    ];
  }, [session, t]);
}

export function Organizations({ session }: { session: Session }) {
  const { t } = useText();
  const [, go] = useLocation();
  const [creating, setCreating] = useState(false);
  const list = useListing(collections.organizations);
  const bulk = useBulk(session);
  const books = usePriceBooks();
  const operator = may(session, 'operator');
  const items = list.query.data?.items ?? [];
  const create = <Button onClick={() => setCreating(true)}>{t('cust.create')}</Button>;
  const columns: Column<Organization>[] = [
    {
      id: 'name',
      sort: 'name',
      title: t('common.name'),
      cell: (o) => (
        <div>
          <Link href={`/organizations/${o.meta.id}`}>{o.meta.name}</Link>
          {o.spec.displayName && <div className="basalt-note">{o.spec.displayName}</div>}
        </div>
      ),
    },
    {
      id: 'state',
      title: t('common.state'),
      value: standingOf,
      cell: (o) => (
        <div>
          <StandingLabel organization={o} /> <span className="basalt-note">{reasonOf(o)}</span>
        </div>
      ),
    },
    {
      id: 'priceBook',
      sort: 'spec.priceBook',
      title: t('cust.priceBook'),
      cell: (o) => books.data?.items.find((b) => b.meta.id === o.spec.priceBook)?.meta.name ?? t('cust.defaultBook'),
    },
    ...(operator
      ? [
          {
            id: 'reseller',
            sort: 'organization',
            title: t('cust.reseller'),
            cell: (o: Organization) =>
              items.find((p) => p.meta.id === o.meta.organization)?.meta.name ?? o.meta.organization ?? '–',
          },
        ]
      : []),
    {
      id: 'unbilled',
      control: true,
      title: t('cust.unbilled'),
      cell: (o) => <Money id={o.meta.id ?? ''} what="unbilledMicros" />,
    },
    {
      id: 'balance',
      control: true,
      title: t('cust.balance'),
      cell: (o) => <Money id={o.meta.id ?? ''} what="balanceMicros" />,
    },
  ];
  return (
    <PageBody title={t('cust.title')} actions={create}>
      <ObjectList
        name="organizations"
        label={t('cust.title')}
        columns={columns}
        list={list}
        bulk={bulk}
        keyOf={(o) => o.meta.id ?? o.meta.name}
        empty={<Empty title={t('cust.empty')} help={t('cust.emptyHelp')} icon={BuildingIcon} action={create} />}
      />
      {creating && (
        <CreateOrganization
          operator={operator}
          onClose={() => setCreating(false)}
          onMade={(o) => go(`/organizations/${o.meta.id}`)}
        />
      )}
    </PageBody>
  );
}
