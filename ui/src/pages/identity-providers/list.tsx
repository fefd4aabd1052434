// The identity providers that users sign in with.
import { Button } from '@patternfly/react-core';
import { KeyIcon } from '@patternfly/react-icons';
import { Link, useLocation } from 'wouter';
import { collections } from '../../api/collection';
import { useOrganizations } from '../../api/customers';
import { deleteProvider, type IdentityProvider } from '../../api/identity-providers';
import { may, type Session } from '../../api/session';
import { useText } from '../../i18n';
import { protocolOf } from '../../lib/identity-provider';
import { Empty, ObjectList, useListing, type Column } from '../../parts/list';
import { PageBody } from '../../parts/page';
import { useRemoval } from '../../parts/removal';

export function IdentityProviders({ session }: { session: Session }) {
  const { t } = useText();
  const [, go] = useLocation();
  const list = useListing(collections.identityProviders);
  const organizations = useOrganizations({ limit: 1000 });
  const removal = useRemoval<IdentityProvider>({
    remove: deleteProvider,
    title: (name) => t('idp.deleteTitle', { name }),
    help: t('idp.deleteHelp'),
  });
  const nameOf = (id: string | undefined) =>
    id ? (organizations.data?.items.find((o) => o.meta.id === id)?.meta.name ?? id) : '–';
  const columns: Column<IdentityProvider>[] = [
    {
      id: 'name',
      sort: 'name',
      title: t('common.name'),
      value: (p) => p.meta.name,
      cell: (p) => <Link href={`/identity-providers/${p.meta.id}`}>{p.meta.name}</Link>,
    },
    { id: 'protocol', title: t('idp.protocol'), cell: (p) => t(`idp.${protocolOf(p)}`) },
    { id: 'issuer', sort: 'spec.issuer', title: t('idp.issuer'), cell: (p) => p.spec.issuer ?? '–' },
    {
      id: 'organization',
      sort: 'spec.organization',
      title: t('idp.organization'),
      cell: (p) => nameOf(p.meta.organization ?? p.spec.organization),
    },
    { id: 'create', sort: 'spec.create', title: t('idp.creates'), cell: (p) => t(p.spec.create ? 'op.yes' : 'op.no') },
  ];
  return (
    <PageBody
      title={t('idp.title')}
      actions={
        <>
          <Button onClick={() => go('/identity-providers/new/oidc')}>{t('idp.addOidc')}</Button>
          <Button variant="secondary" onClick={() => go('/identity-providers/new/saml')}>
            {t('idp.addSaml')}
          </Button>
        </>
      }
    >
      <div className="basalt-stack">
        <p className="basalt-note">{t(may(session, 'operator') ? 'idp.help' : 'idp.ownHelp')}</p>
        <ObjectList
          name="identity-providers"
          label={t('idp.title')}
          columns={columns}
          list={list}
          keyOf={(p) => p.meta.id ?? p.meta.name}
          bulk={[removal.bulk()]}
          actions={(p) => [
            { text: t('idp.test'), run: () => go(`/identity-providers/${p.meta.id}/test`) },
            { text: t('common.delete'), danger: true, run: () => removal.ask(p) },
          ]}
          empty={<Empty title={t('idp.empty')} help={t('idp.emptyHelp')} icon={KeyIcon} />}
        />
      </div>
      {removal.dialog}
    </PageBody>
  );
}
