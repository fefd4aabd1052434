// The apps of an instance, opened through the cluster's app gateway.
import { Button } from '@patternfly/react-core';
import { ExternalLinkAltIcon } from '@patternfly/react-icons';
import { useMutation } from '@tanstack/react-query';
import type { Instance } from '../../api/client';
import { openApp, useConnection } from '../../api/ssh';
import { useText } from '../../i18n';
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

export function Apps({ instance: i }: { instance: Instance }) {
  const { t } = useText();
  const id = i.meta.id ?? '';
  const apps = useConnection(id).data?.apps ?? [];
  const open = useMutation({ mutationFn: (port: number) => inNewTab(() => openApp(id, port)) });
  if (apps.length === 0) return null;
  return (
    <>
      {open.isError && <ErrorAlert error={open.error} />}
      {apps.map((a) => (
        <div key={a.port}>
          <Button
            icon={<ExternalLinkAltIcon />}
            iconPosition="end"
            isLoading={open.isPending && open.variables === a.port}
            onClick={() => open.mutate(a.port)}
          >
            {t('next.app', { name: a.name || t('next.appPort', { port: a.port }) })}
          </Button>
          <p className="basalt-note">{t('next.appHelp', { address: a.address })}</p>
        </div>
      ))}
    </>
  );
}
