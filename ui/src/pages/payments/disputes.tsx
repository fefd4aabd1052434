// Payments by card that their holders have disputed: of one payment, or of all organizations that a seller sells to.
import { GavelIcon } from '@patternfly/react-icons';
import { collections } from '../../api/collection';
import { ended, type Dispute } from '../../api/refunds';
import { useText } from '../../i18n';
import { formatMicros, formatTime } from '../../lib/format';
import { Empty, ObjectList, useListing, type Column } from '../../parts/list';
import { PageBody } from '../../parts/page';
import { Time } from '../../parts/time';
import { ToneLabel } from '../../parts/tone';
import { useCustomerColumns, useStateFilter } from './refunds';

const tones = {
  Inquiry: 'warning',
  NeedsResponse: 'bad',
  UnderReview: 'busy',
  Won: 'good',
  Lost: 'bad',
  Closed: 'off',
} as const;
const states = Object.keys(tones) as (keyof typeof tones)[];

/** useDisputeColumns returns the columns that every list of disputes has. */
function useDisputeColumns(): Column<Dispute>[] {
  const { t, language } = useText();
  const money = (micros: number | undefined, d: Dispute) =>
    micros ? <span className="basalt-number">{formatMicros(micros, d.spec.currency, language)}</span> : '–';
  return [
    {
      id: 'amountColumn',
      sort: 'spec.amountMicros',
      title: t('cust.amountColumn'),
      value: (d) => d.spec.amountMicros / 1e6,
      cell: (d) => money(d.spec.amountMicros, d),
    },
    {
      id: 'withdrawn',
      sort: 'status.withdrawnMicros',
      title: t('dispute.withdrawn'),
      value: (d) => (d.status?.withdrawnMicros ?? 0) / 1e6,
      cell: (d) => money(d.status?.withdrawnMicros, d),
    },
    {
      id: 'state',
      sort: 'status.state',
      title: t('common.state'),
      cell: (d) => {
        const state = d.status?.state || 'NeedsResponse';
        return <ToneLabel tone={tones[state]} text={t(`dispute.state.${state}`)} />;
      },
    },
    {
      id: 'respondBy',
      sort: 'status.respondBy',
      title: t('dispute.respondBy'),
      value: (d) => (ended(d) ? undefined : d.status?.respondBy),
      cell: (d) => (!ended(d) && d.status?.respondBy ? formatTime(d.status.respondBy, language) : '–'),
    },
    { id: 'reason', sort: 'spec.reason', title: t('cust.reason'), cell: (d) => d.spec.reason || '–' },
    {
      id: 'provider',
      sort: 'spec.providerDispute',
      title: t('dispute.provider'),
      cell: (d) => <code>{d.spec.providerDispute}</code>,
    },
    {
      id: 'fee',
      sort: 'status.feeMicros',
      extra: true,
      title: t('dispute.fee'),
      cell: (d) => money(d.status?.feeMicros, d),
    },
    {
      id: 'closed',
      sort: 'status.closedAt',
      extra: true,
      title: t('dispute.closedAt'),
      value: (d) => d.status?.closedAt,
      cell: (d) => <Time at={d.status?.closedAt} />,
    },
  ];
}

/** DisputesOf lists the disputes of one payment. */
export function DisputesOf({ payment }: { payment: string }) {
  const { t } = useText();
  const list = useListing(collections.disputes, {
    fixed: { fieldSelector: `spec.payment=${payment}` },
    sort: '-createdAt',
    prefix: 'disputes.',
  });
  return (
    <ObjectList
      name="disputes-of-payment"
      label={t('dispute.title')}
      columns={useDisputeColumns()}
      list={list}
      keyOf={(d) => d.meta.id ?? d.meta.name}
      empty={<p className="basalt-note">{t('dispute.none')}</p>}
    />
  );
}

export function DisputesPage() {
  const { t } = useText();
  const facets = useStateFilter(states, (s) => t(`dispute.state.${s}`));
  const list = useListing(collections.disputes, { sort: '-createdAt', facets });
  const { organization, payment } = useCustomerColumns<Dispute>();
  return (
    <PageBody title={t('dispute.title')}>
      <div className="basalt-stack">
        <p className="basalt-note">{t('dispute.help')}</p>
        <ObjectList
          name="disputes"
          label={t('dispute.title')}
          columns={[organization, payment, ...useDisputeColumns()]}
          list={list}
          keyOf={(d) => d.meta.id ?? d.meta.name}
          empty={<Empty title={t('dispute.empty')} help={t('dispute.emptyHelp')} icon={GavelIcon} />}
        />
      </div>
    </PageBody>
  );
}
