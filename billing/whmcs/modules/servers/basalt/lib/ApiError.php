<?php

declare(strict_types=1);

namespace WHMCS\Module\Server\Basalt;

/** An error from basaltd, or of the connection to it, with a message for readers in WHMCS. */
final class ApiError extends \RuntimeException
{
    /** @param string $apiCode basaltd's own code ("quota_exceeded"), or "unreachable" */
    public function __construct(string $message, public readonly string $apiCode, public readonly int $status = 0)
    {
        parent::__construct($message, $status);
    }
}
