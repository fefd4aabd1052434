// How to connect to a new instance, and the first program on its GPU.
import { Alert, Card, CardBody, CardTitle } from '@patternfly/react-core';
import { Link } from 'wouter';
import type { Instance } from '../../api/client';
import { useFloatingIPs } from '../../api/network';
import { useImages } from '../../api/queries';
import { useConnection, useSSHKeys } from '../../api/ssh';
import { mostChoices } from '../../api/storage';
import { useText } from '../../i18n';
import { gatewayTo, sshTo, userOf } from '../../lib/access';
import { phaseOf } from '../../lib/phase';
import { Copyable } from '../../parts/copyable';
import { Apps } from './apps';
import { Cost } from './cost';
import { GPUReady } from './gpu-ready';

const setUp = { running: 'next.setUpRuns', done: 'next.setUpDone' } as const;

/** Access explains the sign-in: through the SSH gateway, also with a shell in the browser; by SSH if there is a key;
 * without both by the console's password, which the API does not return. */
function Access({ instance: i }: { instance: Instance }) {
  const { t } = useText();
  const images = useImages('');
  const ips = useFloatingIPs({ project: i.meta.project, limit: mostChoices });
  const connection = useConnection(i.meta.id ?? '').data;
  const own = useSSHKeys().data?.items;
  const user = connection?.user || userOf(images.data?.items.find((x) => x.meta.id === i.spec.image)?.meta.name ?? '');
  const gateway = gatewayTo(connection, user);
  const ssh = sshTo(i, user, ips.data?.items ?? []);
  const keys = (i.spec.sshKeys ?? []).length > 0;
  return (
    <>
      {ssh && (ssh.outside || !gateway) && <Copyable label={t('next.ssh')} text={ssh.command} />}
      {ssh && !ssh.outside && !gateway && <p className="basalt-note">{t('next.sshInside')}</p>}
      {gateway && (
        <>
          <Copyable label={t('next.gateway')} text={gateway.command} />
          <p className="basalt-note">
            {t('next.gatewayHelp', { fingerprint: gateway.fingerprint })}{' '}
            {own?.length === 0 && <Link href="/account">{t('next.noKeys')}</Link>}
          </p>
        </>
      )}
      <p>
        {!keys && !gateway && (user ? t('next.console', { user }) : t('next.consoleAny'))}{' '}
        <Link href={`/instances/${i.meta.id}/console`}>{t(gateway ? 'next.shell' : 'next.open')}</Link>
      </p>
    </>
  );
}

export function Next({ instance: i }: { instance: Instance }) {
  const { t } = useText();
  if (phaseOf(i) !== 'Running') return null;
  const said = i.status?.conditions?.find((c) => c.type === 'SetUp');
  const state = setUp[said?.reason as keyof typeof setUp];
  return (
    <Card>
      <CardTitle component="h2">{t('next.title')}</CardTitle>
      <CardBody className="basalt-stack">
        {state && <p role="status">{t(state)}</p>}
        {said?.reason === 'errors' && (
          <Alert isInline variant="warning" title={t('next.setUpErrors')} component="p">
            {said.message}
          </Alert>
        )}
        <Apps instance={i} />
        <Access instance={i} />
        <Cost instance={i} />
        {i.spec.vgpu && <GPUReady instance={i} />}
      </CardBody>
    </Card>
  );
}
