// Groups of an organization's users: their roles and members, and the connection to its directory.
import { Alert, Button, ClipboardCopy } from '@patternfly/react-core';
import { UsersIcon } from '@patternfly/react-icons';
import { useState } from 'react';
import type { Schemas } from '../api/client';
import { collections } from '../api/collection';
import { deleteGroup, useMemberNames, type Group } from '../api/groups';
import { ConnectDirectory } from '../forms/directory';
import { grantText, GroupForm } from '../forms/group';
import { GroupMembers } from '../forms/group-members';
import { useText } from '../i18n';
import { Empty, ObjectList, useListing, type Column } from '../parts/list';
import { PageBody } from '../parts/page';
import { useRemoval } from '../parts/removal';
import { useProject } from '../parts/project';

type Open = { form: 'group'; group?: Group } | { form: 'members'; group: Group } | { form: 'directory' } | null;

export function Groups() {
  const { t } = useText();
  const { projects, organization } = useProject();
  const list = useListing(collections.groups);
  const names = useMemberNames(organization ?? '').data ?? new Map<string, string>();
  const [open, setOpen] = useState<Open>(null);
  const [key, setKey] = useState<Schemas['APIKey'] | null>(null);
  const close = () => setOpen(null);
  const removal = useRemoval<Group>({
    remove: deleteGroup,
    title: (name) => `${t('common.delete')}: ${name}`,
    help: t('grp.deleteHelp'),
  });
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
          bulk={[removal.bulk()]}
          actions={(g) => [
            { text: t('grp.members'), run: () => setOpen({ form: 'members', group: g }) },
            { text: t('grp.edit'), run: () => setOpen({ form: 'group', group: g }) },
            { text: t('common.delete'), danger: true, run: () => removal.ask(g) },
          ]}
          empty={<Empty title={t('grp.empty')} help={t('grp.emptyHelp')} icon={UsersIcon} />}
        />
      </div>
      {open?.form === 'group' && (
        <GroupForm
          organization={open.group?.meta.organization ?? organization ?? ''}
          group={open.group}
          onClose={close}
        />
      )}
      {open?.form === 'directory' && organization && (
        <ConnectDirectory organization={organization} onMade={(k) => (setKey(k), close())} onClose={close} />
      )}
      {open?.form === 'members' && <GroupMembers group={open.group} names={names} onClose={close} />}
      {removal.dialog}
    </PageBody>
  );
}

function Connected({ made, onClose }: { made: Schemas['APIKey']; onClose: () => void }) {
  const { t } = useText();
  const copy = (label: string, text: string) => (
    <div>
      <strong>{label}</strong>
      <ClipboardCopy isReadOnly hoverTip={t('common.copy')} clickTip={t('common.copied')} textAriaLabel={label}>
        {text}
      </ClipboardCopy>
    </div>
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
