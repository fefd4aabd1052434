// The number of tasks in progress, and a button that lists them.
import { Button } from '@patternfly/react-core';
import { TasksIcon } from '@patternfly/react-icons';
import { lazy, Suspense, useState, useSyncExternalStore } from 'react';
import { seesMachines, type Session } from '../api/session';
import { useText, withWords } from '../i18n';
import { taskStore } from '../lib/tasks';

const TaskDrawer = lazy(withWords(() => import('./tasks').then((m) => ({ default: m.TaskDrawer }))));

export function TasksButton({ session }: { session: Session }) {
  const { t, count } = useText();
  const [open, setOpen] = useState(false);
  const tasks = useSyncExternalStore(taskStore.subscribe, taskStore.get);
  const running = [...tasks.values()].filter((x) => x.state === 'running').length;
  if (!seesMachines(session)) return null;
  return (
    <>
      <Button
        variant="plain"
        icon={<TasksIcon />}
        aria-label={`${t('task.title')}: ${count('task.running', running)}`}
        aria-haspopup="dialog"
        countOptions={running > 0 ? { count: running, isRead: true } : undefined}
        onClick={() => setOpen(true)}
      />
      {open && (
        <Suspense>
          <TaskDrawer session={session} tasks={[...tasks.values()].reverse()} onClose={() => setOpen(false)} />
        </Suspense>
      )}
    </>
  );
}
