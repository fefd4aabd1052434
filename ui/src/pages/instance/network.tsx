// An instance's ports: their addresses, security groups and floating IPs, and a trace of what they can reach.
import { Button, Card, CardBody, CardTitle } from '@patternfly/react-core';
import { NetworkIcon } from '@patternfly/react-icons';
import { useState } from 'react';
import { Link } from 'wouter';
import type { Instance } from '../../api/client';
import {
  useFloatingIPs,
  useNetworkPage,
  useSecurityGroups,
  type FloatingIP,
  type SecurityGroup,
} from '../../api/network';
import { instances } from '../../api/resource';
import { may, type Session } from '../../api/session';
import { mostChoices } from '../../api/storage';
import { useText } from '../../i18n';
import { CheckGroup } from '../../parts/check-group';
import { Conflict } from '../../parts/conflict';
import { useEdit } from '../../parts/edit';
import { FormDialog } from '../../parts/form-dialog';
import { Empty } from '../../parts/list';
import { Same } from '../../parts/same';
import { Rows } from '../../parts/rows';
import { FreeFloatingIP } from '../network/floating';
import { Trace } from '../network/trace';
import { GiveFloatingIP } from './give-floating-ip';

interface GroupsProps {
  instance: Instance;
  network: string;
  title: string;
  groups: SecurityGroup[];
  onClose: () => void;
}

function ChangeGroups({ instance, network, title, groups, onClose }: GroupsProps) {
  const { t } = useText();
  const edit = useEdit<Instance, { groups: string[] }>({
    of: instances,
    object: instance,
    fields: (i) => ({ groups: i?.spec.networks?.find((n) => n.network === network)?.securityGroups ?? [] }),
    body: (i = instance, { groups }) => ({
      kind: i.kind,
      meta: i.meta,
      spec: {
        ...i.spec,
        networks: i.spec.networks?.map((n) => (n.network === network ? { ...n, securityGroups: groups } : n)),
      },
    }),
    onSaved: onClose,
  });
  const names = (ids: string[]) => ids.map((x) => groups.find((g) => g.meta.id === x)?.meta.name ?? x).join(', ');
  return (
    <FormDialog
      title={title}
      help={t('one.changeGroupsHelp')}
      action={t('vol.save')}
      busy={edit.busy}
      disabled={edit.gone}
      error={edit.error}
      schema="Instance"
      body={edit.body}
      onSubmit={edit.submit}
      onClose={onClose}
    >
      <Conflict edit={edit} label={() => t('one.groups')} text={(_, v) => names(v as string[])} />
      <CheckGroup
        id="groups"
        label={t('one.groups')}
        path={`spec.networks[${instance.spec.networks?.findIndex((n) => n.network === network) ?? 0}].securityGroups`}
        options={groups.map((g) => ({ value: g.meta.id ?? '', label: g.meta.name }))}
        chosen={edit.form.groups}
        set={edit.set('groups')}
      />
      <Same curl={edit.curl} />
    </FormDialog>
  );
}

export function InstanceNetwork({ session, instance }: { session: Session; instance: Instance }) {
  const { t } = useText();
  const { id, project, name } = instance.meta;
  const networks = useNetworkPage({ project, limit: mostChoices }).data?.items ?? [];
  const groups = useSecurityGroups({ project, limit: mostChoices }).data?.items ?? [];
  const ips = useFloatingIPs({ project, limit: mostChoices }).data?.items ?? [];
  const [changing, setChanging] = useState<string | null>(null);
  const [allocating, setAllocating] = useState<string | null>(null);
  const [freeing, setFreeing] = useState<FloatingIP | null>(null);
  const member = may(session, 'member') && !instance.meta.deletedAt;
  const networkName = (n: string) => networks.find((x) => x.meta.id === n)?.meta.name ?? n;
  const wanted = instance.spec.networks ?? [];
  if (wanted.length === 0) return <Empty title={t('one.noPorts')} help={t('one.noPortsHelp')} icon={NetworkIcon} />;
  return (
    <div className="basalt-stack">
      {wanted.map((n) => {
        const port = instance.assignment?.ports?.find((p) => p.network === n.network);
        const ip = ips.find((f) => f.spec.instance === id && f.spec.network === n.network);
        const open = networks.some((x) => x.meta.id === n.network && !x.spec.isolated && x.spec.cidr4);
        return (
          <Card key={n.network}>
            <CardTitle component="h2">{t('one.port', { network: networkName(n.network) })}</CardTitle>
            <CardBody className="basalt-stack">
              <Rows
                rows={[
                  [t('net.ipv4'), port?.address4],
                  [t('net.ipv6'), port?.address6],
                  [t('one.mac'), port?.mac && <code key="mac">{port.mac}</code>],
                  [
                    t('one.groups'),
                    <span key="groups" className="basalt-labels">
                      {n.securityGroups?.map((g) => (
                        <Link key={g} href={`/security-groups/${g}`}>
                          {groups.find((x) => x.meta.id === g)?.meta.name ?? g}
                        </Link>
                      ))}
                      {!n.securityGroups?.length && t('common.none')}
                    </span>,
                  ],
                  [t('lb.floating'), ip ? `${ip.assignment?.address || '–'} (${ip.meta.name})` : t('common.none')],
                ]}
              />
              {member && (
                <div className="basalt-actions">
                  <Button variant="secondary" onClick={() => setChanging(n.network)}>
                    {t('one.changeGroups')}
                  </Button>
                  {ip && (
                    <Button variant="secondary" onClick={() => setFreeing(ip)}>
                      {t('one.takeOffIP')}
                    </Button>
                  )}
                  {!ip && open && (
                    <Button variant="secondary" onClick={() => setAllocating(n.network)}>
                      {t('one.attachIP')}
                    </Button>
                  )}
                </div>
              )}
            </CardBody>
          </Card>
        );
      })}
      <Trace from={name} project={project} />
      {changing && (
        <ChangeGroups
          instance={instance}
          network={changing}
          title={t('one.changeGroupsTitle', { network: networkName(changing) })}
          groups={groups}
          onClose={() => setChanging(null)}
        />
      )}
      {allocating && (
        <GiveFloatingIP
          instance={id ?? ''}
          network={allocating}
          project={project}
          free={ips.filter((f) => !f.spec.instance && !f.meta.deletedAt)}
          onClose={() => setAllocating(null)}
        />
      )}
      {freeing && <FreeFloatingIP ip={freeing} onClose={() => setFreeing(null)} />}
    </div>
  );
}
