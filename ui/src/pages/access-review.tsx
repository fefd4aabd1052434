// Who has access, with what to check: for administrators, of what they may list.
import { ShieldAltIcon } from '@patternfly/react-icons';
import { useMemo } from 'react';
import { Link } from 'wouter';
import { accessReview, type AccessEntry, type Finding } from '../api/access';
import { useOrganizationNames } from '../api/cluster';
import { may, type Role, type Session } from '../api/session';
import { useText } from '../i18n';
import type { Facet } from '../lib/narrow';
import { Empty, ObjectList, useListing, type Column } from '../parts/list';
import { PageBody } from '../parts/page';
import { Time } from '../parts/time';
import { ToneLabel } from '../parts/tone';

const findings: readonly Finding[] = [
  'no-second-factor',
  'never-used',
  'unused',
  'no-expiry',
  'unrestricted',
  'expired',
];
const roles: readonly Role[] = ['operator', 'reseller', 'admin', 'member', 'billing', 'viewer'];
const kinds = ['User', 'APIKey'] as const;
const days = [30, 180, 365] as const;

function useFacets(seller: boolean): Facet[] {
  const { t } = useText();
  const organizations = useOrganizationNames(seller).data?.items ?? [];
  const all: Facet[] = [
    {
      id: 'finding',
      label: t('acr.findings'),
      any: t('acr.all'),
      options: [
        { value: 'any', label: t('acr.any') },
        ...findings.map((f) => ({ value: f, label: t(`acr.finding.${f}`) })),
      ],
    },
    {
      id: 'kind',
      label: t('acr.kind'),
      any: t('acr.anyKind'),
      options: kinds.map((k) => ({ value: k, label: t(`acr.kinds.${k}`) })),
    },
    {
      id: 'role',
      label: t('common.role'),
      any: t('acr.anyRole'),
      options: roles.map((r) => ({ value: r, label: t(`role.${r}`) })),
    },
    {
      id: 'unusedDays',
      label: t('acr.days'),
      any: t('acr.unusedFor', { n: 90 }),
      options: days.map((n) => ({ value: String(n), label: t('acr.unusedFor', { n }) })),
    },
  ];
  if (seller)
    all.push({
      id: 'organization',
      label: t('nav.organization'),
      any: t('all.anyOrganization'),
      options: organizations.map((o) => ({ value: o.meta.id ?? '', label: o.meta.name })),
    });
  return all;
}

function useColumns(seller: boolean): Column<AccessEntry>[] {
  const { t } = useText();
  return useMemo(() => {
    const grant = (g: AccessEntry['grants'][number]) => {
      const of = [seller && (g.organizationName || g.organization), g.projectName || g.project].filter(Boolean);
      return t(`role.${g.role}`) + (of.length > 0 ? ` (${of.join(' / ')})` : '');
    };
    const all: (Column<AccessEntry> | false)[] = [
      {
        id: 'name',
        title: t('common.name'),
        share: 1.5,
        cell: (e) => (
          <Link href={`/${e.kind === 'User' ? 'members' : 'keys'}?search=${encodeURIComponent(e.name)}`}>{e.name}</Link>
        ),
      },
      { id: 'kind', title: t('acr.kind'), cell: (e) => t(`acr.kinds.${e.kind}`) },
      seller && {
        id: 'organization',
        title: t('nav.organization'),
        cell: (e) => e.organizationName || e.organization || '–',
      },
      { id: 'grants', title: t('mem.grants'), cell: (e) => e.grants.map(grant).join(', ') || t('common.none') },
      {
        id: 'findings',
        title: t('acr.findings'),
        share: 1.5,
        value: (e) => e.findings?.map((f) => t(`acr.finding.${f}`)).join(', '),
        cell: (e) =>
          e.findings ? (
            <span className="basalt-labels">
              {e.findings.map((f) => (
                <ToneLabel key={f} tone="warning" text={t(`acr.finding.${f}`)} />
              ))}
            </span>
          ) : (
            '–'
          ),
      },
      {
        id: 'lastUsed',
        title: t('key.lastUsed'),
        value: (e) => e.lastUsedAt,
        cell: (e) => <Time at={e.lastUsedAt} none={t('common.never')} />,
      },
      {
        id: 'twoFactor',
        title: t('mem.twoFactor'),
        extra: true,
        cell: (e) => (e.kind === 'User' ? t(e.secondFactor ? 'mem.on' : 'mem.off') : '–'),
      },
      {
        id: 'expires',
        title: t('key.expires'),
        value: (e) => e.expiresAt,
        cell: (e) => (e.kind === 'APIKey' ? <Time at={e.expiresAt} none={t('common.never')} /> : '–'),
      },
      { id: 'scopes', title: t('acr.scopes'), extra: true, cell: (e) => e.scopes?.join(', ') || '–' },
      { id: 'networks', title: t('acr.networks'), extra: true, cell: (e) => e.networks?.join(', ') || '–' },
      {
        id: 'created',
        title: t('acr.created'),
        extra: true,
        value: (e) => e.createdAt,
        cell: (e) => <Time at={e.createdAt} />,
      },
      { id: 'id', title: t('list.id'), extra: true, cell: (e) => e.id },
    ];
    return all.filter((c) => c !== false);
  }, [seller, t]);
}

export function AccessReview({ session }: { session: Session }) {
  const { t } = useText();
  const seller = may(session, 'reseller');
  const list = useListing(accessReview, { facets: useFacets(seller) });
  return (
    <PageBody title={t('acr.title')}>
      <div className="basalt-stack">
        <p className="basalt-note">{t('acr.help')}</p>
        <ObjectList
          name="access-review"
          label={t('acr.title')}
          columns={useColumns(seller)}
          list={list}
          keyOf={(e) => e.id}
          empty={<Empty title={t('acr.empty')} help={t('acr.emptyHelp')} icon={ShieldAltIcon} />}
        />
      </div>
    </PageBody>
  );
}
