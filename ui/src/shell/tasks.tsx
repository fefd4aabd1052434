// Tasks in progress, and the results of ended ones: newest first.
import { Button, Label, Modal, ModalBody, ModalFooter, ModalHeader, Progress } from '@patternfly/react-core';
import { CheckCircleIcon, ExclamationCircleIcon, InProgressIcon } from '@patternfly/react-icons';
import { Link } from 'wouter';
import type { Session } from '../api/session';
import { useUnderWay } from './under-way';
import { useText, type Key } from '../i18n';
import { taskStore, type Task } from '../lib/tasks';
import { ErrorAlert } from '../parts/error';
import { useTell } from '../parts/told';

const looks = {
  running: { color: 'blue', icon: <InProgressIcon /> },
  done: { color: 'green', icon: <CheckCircleIcon /> },
  failed: { color: 'red', icon: <ExclamationCircleIcon /> },
} as const;

function Row({ task, onGo }: { task: Task; onGo: () => void }) {
  const { t, has } = useText();
  const tell = useTell();
  const kind = `task.kind.${task.kind}`;
  const words: Key = task.state === 'running' ? `task.${task.doing}` : `task.${task.state}`;
  return (
    <li className="basalt-task">
      <div className="basalt-header">
        <span>
          <span className="basalt-note">{has(kind) ? t(kind) : task.kind}</span>{' '}
          {task.href ? (
            <Link href={task.href} onClick={onGo}>
              {task.name}
            </Link>
          ) : (
            task.name
          )}
        </span>
        <Label {...looks[task.state]} isCompact>
          {t(words)}
        </Label>
      </div>
      {task.percent !== undefined && task.state === 'running' && (
        <Progress value={task.percent} size="sm" aria-label={task.name} />
      )}
      {task.note && <p className="basalt-note basalt-lines">{tell(task.note)}</p>}
      {task.state === 'failed' && <p className="basalt-note">{t('task.failedHelp')}</p>}
    </li>
  );
}

export function TaskDrawer({ session, tasks, onClose }: { session: Session; tasks: Task[]; onClose: () => void }) {
  const { t } = useText();
  const look = useUnderWay(session);
  return (
    <Modal isOpen variant="small" position="top" onClose={onClose} aria-labelledby="tasks-title">
      <ModalHeader title={t('task.title')} description={t('task.help')} labelId="tasks-title" />
      <ModalBody tabIndex={0} aria-label={t('task.title')}>
        <ErrorAlert error={look.error} onRetry={() => void look.refetch()} />
        {tasks.length === 0 && <p>{t('task.none')}</p>}
        <ul aria-live="polite" className="basalt-events basalt-stack">
          {tasks.map((x) => (
            <Row key={x.id} task={x} onGo={onClose} />
          ))}
        </ul>
      </ModalBody>
      <ModalFooter>
        <Button variant="secondary" isDisabled={tasks.every((x) => x.state === 'running')} onClick={taskStore.dismiss}>
          {t('task.dismiss')}
        </Button>
        <Button variant="link" onClick={onClose}>
          {t('common.close')}
        </Button>
      </ModalFooter>
    </Modal>
  );
}
