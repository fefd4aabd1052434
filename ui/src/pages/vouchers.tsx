// Vouchers and their redemptions, and a button that creates one.
import { Button } from '@patternfly/react-core';
import { GiftIcon } from '@patternfly/react-icons';
import { useState } from 'react';
import { collections } from '../api/collection';
import { deleteVoucher, voucherState, type Voucher } from '../api/vouchers';
import { CreateVoucher } from '../forms/voucher';
import { useText } from '../i18n';
import { formatDay, formatMicros } from '../lib/format';
import { Empty, ObjectList, useListing, type Column } from '../parts/list';
import { PageBody } from '../parts/page';
import { ToneLabel } from '../parts/tone';

const tones = { open: 'good', used: 'off', expired: 'warning' } as const;

export function Vouchers() {
  const { t, language } = useText();
  const [creating, setCreating] = useState(false);
  const list = useListing(collections.vouchers, { sort: '-createdAt' });
  const columns: Column<Voucher>[] = [
    { id: 'name', sort: 'name', title: t('common.name'), cell: (v) => v.meta.name },
    {
      id: 'amount',
      sort: 'spec.amountMicros',
      title: t('vch.amount'),
      cell: (v) => formatMicros(v.spec.amountMicros, v.spec.currency, language),
    },
    {
      id: 'redeemed',
      sort: 'status.redeemed',
      title: t('vch.redeemed'),
      cell: (v) => t('vch.of', { n: v.status?.redeemed ?? 0, most: v.spec.redemptions ?? 1 }),
    },
    {
      id: 'state',
      title: t('vch.state'),
      cell: (v) => {
        const state = voucherState(v);
        return <ToneLabel tone={tones[state]} text={t(`vch.state.${state}`)} />;
      },
    },
    {
      id: 'expires',
      sort: 'spec.expiresAt',
      title: t('vch.expires'),
      cell: (v) => (v.spec.expiresAt ? formatDay(v.spec.expiresAt, language) : '–'),
    },
    { id: 'note', sort: 'spec.note', title: t('vch.note'), cell: (v) => v.spec.note || '–' },
  ];
  const create = <Button onClick={() => setCreating(true)}>{t('vch.create')}</Button>;
  return (
    <PageBody title={t('vch.title')} actions={create}>
      <div className="basalt-stack">
        <p className="basalt-note">{t('vch.help')}</p>
        <ObjectList
          label={t('vch.title')}
          name="vouchers"
          columns={columns}
          list={list}
          bulk={[
            { id: 'delete', text: t('common.delete'), help: t('vch.deleteHelp'), danger: true, run: deleteVoucher },
          ]}
          nameOf={(v) => v.meta.name}
          keyOf={(v) => v.meta.id ?? v.meta.name}
          empty={<Empty title={t('vch.empty')} help={t('vch.emptyHelp')} icon={GiftIcon} />}
        />
      </div>
      {creating && <CreateVoucher onClose={() => setCreating(false)} />}
    </PageBody>
  );
}
