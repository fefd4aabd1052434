import { Label } from '@patternfly/react-core';
import { UsersIcon } from '@patternfly/react-icons';
import { useState } from 'react';
import type { Schemas } from '../api/client';
import { useUsers } from '../api/queries';
import type { Session } from '../api/session';
import { useText } from '../i18n';
import { formatTime } from '../lib/format';
import { Empty, ObjectList, usePages, type Column } from '../parts/list';
import { PageBody } from '../parts/page';
import { useProject } from '../shell/project';

export function Members({ session: _ }: { session: Session }) {
  const { t, language } = useText();
  const { projects } = useProject();
  const pages = usePages();
  const [name, setName] = useState('');
  const query = useUsers({ name, limit: 25, continue: pages.token });
  const grant = (g: Schemas['Grant']) => {
    const p = projects.find((x) => x.meta.id === g.project)?.meta.name ?? g.project;
    return p ? `${t(`role.${g.role}`)} (${p})` : t(`role.${g.role}`);
  };
  const columns: Column<Schemas['User']>[] = [
    { title: t('mem.email'), cell: (u) => <>{u.meta.name} {u.spec.disabled && <Label color="red" isCompact>{t('mem.disabled')}</Label>}</> },
    { title: t('common.name'), cell: (u) => u.spec.displayName || '–' },
    { title: t('mem.grants'), cell: (u) => u.spec.grants?.map(grant).join(', ') || t('common.none') },
    { title: t('mem.twoFactor'), cell: (u) => (u.status?.totp ? t('mem.on') : t('mem.off')) },
    { title: t('mem.lastLogin'), cell: (u) => formatTime(u.status?.lastLoginAt, language) || t('common.never') },
  ];
  return (
    <PageBody title={t('mem.title')}>
      <ObjectList
        label={t('mem.title')} columns={columns} query={query} keyOf={(u) => u.meta.id ?? u.meta.name} pages={pages}
        filter={{ name, set: (n) => (setName(n), pages.reset()) }}
        empty={<Empty title={t('mem.empty')} help={t('mem.emptyHelp')} icon={UsersIcon} />}
      />
    </PageBody>
  );
}
