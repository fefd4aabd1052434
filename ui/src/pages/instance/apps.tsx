// The apps of an instance, opened through the cluster's app gateway, or through SSH where there is none.
import { Button } from '@patternfly/react-core';
import { ExternalLinkAltIcon } from '@patternfly/react-icons';
import { useMutation } from '@tanstack/react-query';
import type { Instance, Schemas } from '../../api/client';
import { openApp, useConnection } from '../../api/ssh';
import { useText } from '../../i18n';
import { forwardTo } from '../../lib/access';
import { Copyable } from '../../parts/copyable';
import { ErrorAlert } from '../../parts/error';

/**
 * inNewTab opens the URL that find returns, in a tab that opens immediately: browsers block one that opens later.
 * The app cannot access this page.
 */
async function inNewTab(find: () => Promise<{ url: string }>): Promise<void> {
  const tab = window.open('', '_blank');
  if (tab) tab.opener = null;
  try {
    const { url } = await find();
    if (tab) tab.location.replace(url);
    else window.location.assign(url);
  } catch (e) {
    tab?.close();
    throw e;
  }
}

/** Forwarded explains how to open an app on the user's own computer. */
function Forwarded({ app, name, command }: { app: Schemas['InstanceApp']; name: string; command: string }) {
  const { t } = useText();
  return (
    <div>
      <Copyable label={t('next.forward', { name })} text={command} />
      <p className="basalt-note">
        {t('next.forwardHelp')}{' '}
        <a href={app.address} target="_blank" rel="noreferrer">
          {app.address}
        </a>
      </p>
    </div>
  );
}

export function Apps({ instance: i }: { instance: Instance }) {
  const { t } = useText();
  const id = i.meta.id ?? '';
  const connection = useConnection(id).data;
  const apps = connection?.apps ?? [];
  const open = useMutation({ mutationFn: (port: number) => inNewTab(() => openApp(id, port)) });
  if (!connection || apps.length === 0) return null;
  const nameOf = (a: Schemas['InstanceApp']) => a.name || t('next.appPort', { port: a.port });
  return (
    <>
      {open.isError && <ErrorAlert error={open.error} />}
      {apps.map((a) => {
        const command = forwardTo(connection, id, a);
        if (command) return <Forwarded key={a.port} app={a} name={nameOf(a)} command={command} />;
        return (
          <div key={a.port}>
            <Button
              icon={<ExternalLinkAltIcon />}
              iconPosition="end"
              isLoading={open.isPending && open.variables === a.port}
              onClick={() => open.mutate(a.port)}
            >
              {t('next.app', { name: nameOf(a) })}
            </Button>
            <p className="basalt-note">{t('next.appHelp', { address: a.address })}</p>
          </div>
        );
      })}
    </>
  );
}
