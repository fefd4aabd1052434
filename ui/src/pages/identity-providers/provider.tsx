// One identity provider: its settings, what it must be told about this service, and a test of the sign-in.
import { Button, Card, CardBody } from '@patternfly/react-core';
import { KeyIcon } from '@patternfly/react-icons';
import { Link, useLocation } from 'wouter';
import { deleteProvider, useIdentityProvider, type IdentityProvider } from '../../api/identity-providers';
import { IdentityProviderForm } from '../../forms/identity-provider';
import { useText, type Key } from '../../i18n';
import { may, type Session } from '../../api/session';
import { ownerOf, protocolOf, type Protocol } from '../../lib/identity-provider';
import { redirectAddress } from '../../lib/oidc';
import { ErrorAlert } from '../../parts/error';
import { Empty } from '../../parts/list';
import { Loading } from '../../parts/loading';
import { PageBody } from '../../parts/page';
import { useRemoval } from '../../parts/removal';
import { Views } from '../../parts/views';
import { Connection } from './connection';
import { Refusals } from './refusals';
import { SignInTest } from './test';

const views: { tab: string; text: Key }[] = [
  { tab: '', text: 'idp.settings' },
  { tab: 'connection', text: 'idp.connection' },
  { tab: 'test', text: 'idp.test' },
  { tab: 'refusals', text: 'idp.refusals' },
];

function Create({ protocol, owner }: { protocol: Protocol; owner: string }) {
  const { t } = useText();
  const [, go] = useLocation();
  return (
    <PageBody
      title={t(protocol === 'saml' ? 'idp.addSaml' : 'idp.addOidc')}
      above={{ href: '/identity-providers', title: t('idp.title') }}
    >
      <div className="basalt-stack basalt-form">
        <p className="basalt-note">
          {owner
            ? t(protocol === 'saml' ? 'idp.addOwnSamlHelp' : 'idp.addOwnOidcHelp', { redirect: redirectAddress() })
            : t(protocol === 'saml' ? 'idp.addSamlHelp' : 'idp.addOidcHelp', {
                entityID: `${location.origin}/v1/login/saml/NAME/metadata`,
              })}
        </p>
        <Card>
          <CardBody>
            <IdentityProviderForm
              protocol={protocol}
              owner={owner}
              onSaved={(p) => go(`/identity-providers/${p.meta.id}/connection`)}
            />
          </CardBody>
        </Card>
      </div>
    </PageBody>
  );
}

function Provider({ provider: p, tab }: { provider: IdentityProvider; tab: string }) {
  const { t } = useText();
  const [, go] = useLocation();
  const removal = useRemoval<IdentityProvider>({
    remove: (o) => deleteProvider(o).then(() => go('/identity-providers')),
    title: (name) => t('idp.deleteTitle', { name }),
    help: t('idp.deleteHelp'),
  });
  return (
    <PageBody
      title={p.meta.name}
      above={{ href: '/identity-providers', title: t('idp.title') }}
      actions={
        <Button variant="danger" onClick={() => removal.ask(p)}>
          {t('common.delete')}
        </Button>
      }
    >
      <div className="basalt-stack basalt-form">
        <Views
          label={t('idp.views', { name: p.meta.name })}
          views={views.map((v) => ({
            href: `/identity-providers/${p.meta.id}${v.tab && `/${v.tab}`}`,
            title: t(v.text),
            active: v.tab === tab,
          }))}
        />
        <Card>
          <CardBody>
            {tab === '' && <IdentityProviderForm protocol={protocolOf(p)} provider={p} owner={ownerOf(p)} />}
            {tab === 'connection' && <Connection provider={p} />}
            {tab === 'test' && <SignInTest provider={p} />}
            {tab === 'refusals' && <Refusals provider={p} />}
          </CardBody>
        </Card>
      </div>
      {removal.dialog}
    </PageBody>
  );
}

function Known({ id, tab }: { id: string; tab: string }) {
  const { t } = useText();
  const query = useIdentityProvider(id);
  const above = { href: '/identity-providers', title: t('idp.title') };
  if (query.isPending) return <Loading />;
  if (query.isError)
    return (
      <PageBody title={id} above={above}>
        <ErrorAlert error={query.error} onRetry={() => void query.refetch()} />
      </PageBody>
    );
  if (!query.data)
    return (
      <PageBody title={t('idp.gone')} above={above}>
        <Empty
          title={t('idp.gone')}
          help={t('idp.goneHelp')}
          icon={KeyIcon}
          action={<Link href="/identity-providers">{t('idp.toList')}</Link>}
        />
      </PageBody>
    );
  return <Provider provider={query.data} tab={tab} />;
}

export function IdentityProviderPage({ session, id, tab }: { session: Session; id: string; tab: string }) {
  const owner = may(session, 'operator') ? '' : (session.organization ?? '');
  if (id === 'new') return <Create key={tab} protocol={tab === 'saml' ? 'saml' : 'oidc'} owner={owner} />;
  return <Known id={id} tab={tab} />;
}
