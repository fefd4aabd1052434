// A test of the sign-in: leaves for the provider, and shows what a sign-in would give.
import {
  Alert,
  Button,
  DescriptionList,
  DescriptionListDescription,
  DescriptionListGroup,
  DescriptionListTerm,
} from '@patternfly/react-core';
import { useState } from 'react';
import { Link } from 'wouter';
import { useBeginLogin, useTestResult, type IdentityProvider, type TestResult } from '../../api/identity-providers';
import { useProjectsOf } from '../../api/customers';
import { useOrganizationNames } from '../../api/cluster';
import { useText } from '../../i18n';
import { ownerOf } from '../../lib/identity-provider';
import { keepFlow, redirectAddress, returnOfTest } from '../../lib/oidc';
import { asCommand } from '../../lib/shell';
import { Copyable } from '../../parts/copyable';
import { ErrorAlert } from '../../parts/error';
import { Loading } from '../../parts/loading';

const tones = { 'sign-in': 'success', create: 'success', refused: 'warning' } as const;

function Result({ result: r }: { result: TestResult }) {
  const { t } = useText();
  const names = useOrganizationNames(true).data?.items ?? [];
  const projects = useProjectsOf({ limit: 1000 }).data?.items ?? [];
  const named = (all: { meta: { id?: string; name: string } }[], id: string | undefined) =>
    id && (all.find((o) => o.meta.id === id)?.meta.name ?? id);
  const grants = r.grants.map((g) => {
    const where = [named(names, g.organization), named(projects, g.project)].filter(Boolean).join('/');
    return where ? `${t(`role.${g.role}`)} (${where})` : t(`role.${g.role}`);
  });
  const rows: [string, string][] = [
    [t('idp.subject'), r.subject],
    [t('signIn.email'), r.email],
    [t('idp.displayName'), r.displayName ?? ''],
    [t('idp.user'), r.user ?? ''],
    [t('grp.roles'), grants.join(', ') || t('common.none')],
    [t('grp.title'), r.groups.join(', ') || t('common.none')],
    ...r.claims.map((c): [string, string] => [t('idp.claimOf', { name: c.name }), c.values.join(', ')]),
  ];
  return (
    <div className="basalt-stack">
      <Alert component="h2" variant={tones[r.outcome]} isInline isLiveRegion title={t(`idp.outcome.${r.outcome}`)}>
        {r.reason}
      </Alert>
      <DescriptionList isHorizontal isCompact>
        {rows
          .filter(([, text]) => text)
          .map(([term, text]) => (
            <DescriptionListGroup key={term}>
              <DescriptionListTerm>{term}</DescriptionListTerm>
              <DescriptionListDescription>{text}</DescriptionListDescription>
            </DescriptionListGroup>
          ))}
      </DescriptionList>
    </div>
  );
}

export function SignInTest({ provider: p }: { provider: IdentityProvider }) {
  const { t } = useText();
  const id = p.meta.id ?? '';
  const [back] = useState(() => returnOfTest(id));
  const result = useTestResult(id, back);
  const begin = useBeginLogin(({ url, flow }) => {
    keepFlow(flow, id);
    location.assign(url);
  });
  const owner = ownerOf(p);
  const returns = owner || p.spec.redirects?.includes(redirectAddress());
  return (
    <div className="basalt-stack">
      <p>{t('idp.testHelp')}</p>
      {!returns && (
        <Alert component="p" variant="warning" isInline title={t('idp.testRedirect', { address: redirectAddress() })} />
      )}
      <div>
        <Button
          isLoading={begin.isPending}
          isDisabled={begin.isPending}
          onClick={() =>
            begin.mutate({
              provider: p.meta.name,
              ...(owner && { organization: owner }),
              redirect: redirectAddress(),
            })
          }
        >
          {t('idp.testBegin')}
        </Button>
      </div>
      <ErrorAlert error={begin.error} onClose={begin.reset} />
      {back && !back.code && (
        <Alert component="p" variant="warning" isInline title={t('idp.testRefused')}>
          <Link href={`/identity-providers/${id}/refusals`}>{t('idp.refusals')}</Link>
        </Alert>
      )}
      {result.isLoading && <Loading />}
      <ErrorAlert error={result.error} />
      {result.data && <Result result={result.data} />}
      <Copyable label={t('new.cli')} text={asCommand(['identity-provider', 'test', p.meta.name])} />
    </div>
  );
}
