// Groups of an organization's users: their roles and members, and the connection to its directory.
import { Alert, Button, ClipboardCopy } from '@patternfly/react-core';
import { UsersIcon } from '@patternfly/react-icons';
import { useMutation, useQueryClient } from '@tanstack/react-query';
import { useState } from 'react';
import type { Schemas } from '../api/client';
import { collections } from '../api/collection';
import { deleteGroup, useMemberNames, type Group } from '../api/groups';
import { ConnectDirectory } from '../forms/directory';
import { grantText, GroupForm } from '../forms/group';
import { useText } from '../i18n';
import { Confirm } from '../parts/confirm';
import { Empty, ObjectList, useListing, type Column } from '../parts/list';
import { PageBody } from '../parts/page';
import { useProject } from '../parts/project';

type Open = { form: 'group'; group?: Group } | { form: 'directory' } | { form: 'delete'; group: Group } | null;

export function Groups() {
  const { t } = useText();
  const { projects, organization } = useProject();
  const list = useListing(collections.groups);
  const names = useMemberNames(organization ?? '').data ?? new Map<string, string>();
  const [open, setOpen] = useState<Open>(null);
  const [key, setKey] = useState<Schemas['APIKey'] | null>(null);
  const close = () => setOpen(null);
  const roles = (g: Group) => g.spec.grants?.map((x) => grantText(x, t(`role.${x.role}`), projects)).join(', ');
  const columns: Column<Group>[] = [
    { id: 'name', sort: 'name', title: t('common.name'), cell: (g) => g.meta.name },
    {
      id: 'display',
      sort: 'spec.displayName',
      title: t('grp.displayName'),
      cell: (g) => g.spec.displayName || '–',
    },
    { id: 'roles', title: t('grp.roles'), cell: (g) => roles(g) || t('common.none') },
    { id: 'members', title: t('grp.members'), cell: (g) => String(g.spec.members?.length ?? 0) },
    {
      id: 'source',
      sort: 'spec.source',
      title: t('grp.source'),
      cell: (g) => t(`grp.source.${g.spec.source ?? 'local'}`),
    },
  ];
  const create = organization && (
    <>
      <Button onClick={() => setOpen({ form: 'group' })}>{t('grp.create')}</Button>{' '}
      <Button variant="secondary" onClick={() => (setKey(null), setOpen({ form: 'directory' }))}>
        {t('grp.connect')}
      </Button>
    </>
  );
  return (
    <PageBody title={t('grp.title')} actions={create}>
      <div className="basalt-stack">
        <p className="basalt-note">{t('grp.help')}</p>
        {key && <Connected made={key} onClose={() => setKey(null)} />}
        <ObjectList
          name="groups"
          label={t('grp.title')}
          columns={columns}
          list={list}
          keyOf={(g) => g.meta.id ?? g.meta.name}
          actions={(g) => [
            { text: t('grp.edit'), run: () => setOpen({ form: 'group', group: g }) },
            { text: t('common.delete'), danger: true, run: () => setOpen({ form: 'delete', group: g }) },
          ]}
          empty={<Empty title={t('grp.empty')} help={t('grp.emptyHelp')} icon={UsersIcon} />}
        />
      </div>
      {open?.form === 'group' && (
        <GroupForm
          organization={open.group?.meta.organization ?? organization ?? ''}
          group={open.group}
          names={names}
          onClose={close}
        />
      )}
      {open?.form === 'directory' && organization && (
        <ConnectDirectory organization={organization} onMade={(k) => (setKey(k), close())} onClose={close} />
      )}
      {open?.form === 'delete' && <Remove group={open.group} onClose={close} />}
    </PageBody>
  );
}

function Connected({ made, onClose }: { made: Schemas['APIKey']; onClose: () => void }) {
  const { t } = useText();
  const copy = (label: string, text: string) => (
    <ClipboardCopy isReadOnly hoverTip={t('common.copy')} clickTip={t('common.copied')} textAriaLabel={label}>
      {text}
    </ClipboardCopy>
  );
  return (
    <Alert component="h2" variant="success" isInline isLiveRegion title={t('grp.connected', { name: made.meta.name })}>
      <div className="basalt-stack">
        <p>{t('grp.secretHelp')}</p>
        {copy(t('grp.url'), `${location.origin}/scim/v2`)}
        {copy(t('grp.key'), made.secret ?? '')}
        <div>
          <Button variant="secondary" onClick={onClose}>
            {t('common.close')}
          </Button>
        </div>
      </div>
    </Alert>
  );
}

function Remove({ group, onClose }: { group: Group; onClose: () => void }) {
  const { t } = useText();
  const client = useQueryClient();
  const remove = useMutation({
    mutationFn: () => deleteGroup(group),
    onSuccess: () => {
      void client.invalidateQueries({ queryKey: ['Group', 'list'] });
      onClose();
    },
  });
  return (
    <Confirm
      title={`${t('common.delete')}: ${group.meta.name}`}
      help={t('grp.deleteHelp')}
      action={t('common.delete')}
      danger
      busy={remove.isPending}
      error={remove.error}
      onConfirm={() => remove.mutate()}
      onClose={onClose}
    />
  );
}
