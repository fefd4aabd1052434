// The users of a customer.
import { Button, Label } from '@patternfly/react-core';
import { UsersIcon } from '@patternfly/react-icons';
import { useState } from 'react';
import type { Schemas } from '../../api/client';
import { deleteUser, useProjectsOf, type Organization } from '../../api/customers';
import { AddAdmin, LinkReady } from '../../forms/admin';
import { useText } from '../../i18n';
import { Empty, ObjectList, useListing, type Column } from '../../parts/list';
import { useRemoval } from '../../parts/removal';
import { Time } from '../../parts/time';
import { collections } from '../../api/collection';

type User = Schemas['User'];

export function People({ organization: o }: { organization: Organization }) {
  const { t } = useText();
  const [adding, setAdding] = useState(false);
  const [made, setMade] = useState<User | null>(null);
  const list = useListing(collections.users, { fixed: { organization: o.meta.id } });
  const projects = useProjectsOf({ organization: o.meta.id, limit: 1000 });
  const removal = useRemoval<User>({
    remove: deleteUser,
    title: (name) => t('cust.personDelete', { name }),
    help: t('cust.personDeleteHelp'),
  });
  const grant = (g: Schemas['Grant']) => {
    const p = projects.data?.items.find((x) => x.meta.id === g.project)?.meta.name ?? g.project;
    return p ? `${t(`role.${g.role}`)} (${p})` : t(`role.${g.role}`);
  };
  const add = (
    <Button variant="secondary" onClick={() => (setMade(null), setAdding(true))}>
      {t('cust.adminAdd')}
    </Button>
  );
  const columns: Column<User>[] = [
    {
      id: 'email',
      sort: 'name',
      title: t('mem.email'),
      cell: (u) => (
        <>
          {u.meta.name}{' '}
          {u.spec.disabled && (
            <Label color="red" isCompact>
              {t('mem.disabled')}
            </Label>
          )}
        </>
      ),
    },
    { id: 'grants', title: t('mem.grants'), cell: (u) => u.spec.grants?.map(grant).join(', ') || t('common.none') },
    {
      id: 'twoFactor',
      sort: 'status.totp',
      title: t('mem.twoFactor'),
      cell: (u) => (u.status?.totp ? t('mem.on') : t('mem.off')),
    },
    {
      id: 'lastLogin',
      sort: 'status.lastLoginAt',
      title: t('mem.lastLogin'),
      value: (u) => u.status?.lastLoginAt,
      cell: (u) => <Time at={u.status?.lastLoginAt} none={t('common.never')} />,
    },
    {
      id: 'actions',
      control: true,
      title: t('common.actions'),
      cell: (u) => (
        <Button
          variant="link"
          isInline
          isDanger
          aria-label={`${t('common.delete')}: ${u.meta.name}`}
          onClick={() => removal.ask(u)}
        >
          {t('common.delete')}
        </Button>
      ),
    },
  ];
  return (
    <div className="basalt-stack">
      {made && <LinkReady user={made} onClose={() => setMade(null)} />}
      {(list.query.data?.items.length ?? 0) > 0 && <div>{add}</div>}
      <ObjectList
        name="customer-people"
        label={t('cust.people')}
        columns={columns}
        list={list}
        bulk={[removal.bulk()]}
        keyOf={(u) => u.meta.id ?? u.meta.name}
        empty={<Empty title={t('cust.peopleEmpty')} help={t('cust.peopleEmptyHelp')} icon={UsersIcon} action={add} />}
      />
      {adding && (
        <AddAdmin
          organization={o.meta.id ?? ''}
          name={o.meta.name}
          onClose={() => setAdding(false)}
          onMade={(u) => (setMade(u), setAdding(false))}
        />
      )}
      {removal.dialog}
    </div>
  );
}
