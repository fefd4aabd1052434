// What the cluster consists of: its nodes and storage, its external network, its address, and an instance that uses a GPU.
import { Button } from '@patternfly/react-core';
import { useQueryClient } from '@tanstack/react-query';
import { useState } from 'react';
import { Link } from 'wouter';
import type { There } from '../../api/setup';
import { useText } from '../../i18n';
import { readyWithGpu } from '../../lib/first-steps';
import { formatBytes } from '../../lib/format';
import { nodeState, troublesOf } from '../../lib/node';
import { whyOf } from '../../lib/state';
import { Note } from '../../parts/told';
import { ExternalForm } from '../external-form';

export function NodesStep({ nodes }: Pick<There, 'nodes'>) {
  const { t, language } = useText();
  return (
    <>
      <ul className="basalt-plain">
        {nodes.map((n) => (
          <li key={n.meta.id}>
            <Link href={`/nodes/${n.meta.id}`}>{n.meta.name}</Link> {t(`node.${nodeState(n)}`)}{' '}
            <span className="basalt-note">{troublesOf(n).join('; ')}</span>
            {n.status?.storageBytes && (
              <span className="basalt-note">
                {' '}
                {t('node.free', {
                  free: formatBytes(n.status.storageFreeBytes ?? 0, language),
                  all: formatBytes(n.status.storageBytes, language),
                })}
              </span>
            )}
          </li>
        ))}
      </ul>
      <p className="basalt-actions">
        <Link href="/maintenance/tokens">{t('mnt.tokens')}</Link> <Link href="/storage">{t('sto.title')}</Link>
      </p>
    </>
  );
}

export function NetworkStep({ external }: Pick<There, 'external'>) {
  const { t } = useText();
  const client = useQueryClient();
  const [adding, add] = useState(false);
  const close = () => add(false);
  return (
    <>
      <ul className="basalt-plain">
        {external.map((n) => (
          <li key={n.meta.id}>
            {n.meta.name} {t(`xnet.${n.status?.phase || 'Pending'}`)} <Note of={whyOf(n)} />
          </li>
        ))}
      </ul>
      <p className="basalt-actions">
        <Button variant="secondary" onClick={() => add(true)}>
          {t('xnet.create')}
        </Button>{' '}
        <Link href="/network-health">{t('xnet.title')}</Link>
      </p>
      {adding && (
        <ExternalForm
          onDone={() => (close(), void client.invalidateQueries({ queryKey: ['ExternalNetwork', 'list'] }))}
          onClose={close}
        />
      )}
    </>
  );
}

export function AddressStep({ address }: Pick<There, 'address'>) {
  const { t } = useText();
  return (
    <>
      <p>{address ? <code>{address}</code> : t('wizard.addressNone')}</p>
      <p className="basalt-actions">
        <Link href="/mail">{t('mail.title')}</Link> <Link href="/certificates">{t('acme.title')}</Link>
      </p>
    </>
  );
}

export function MachineStep({ instances }: Pick<There, 'instances'>) {
  const { t } = useText();
  const shown = readyWithGpu(instances) ?? instances[0];
  return (
    <p>
      {shown ? (
        <Link href={`/instances/${shown.meta.id}`}>{shown.meta.name}</Link>
      ) : (
        <Link href="/instances/new">{t('dash.first')}</Link>
      )}
    </p>
  );
}
