-- cancel: leave the queue, and pass on a wake-up that may have been meant for the one who leaves.
-- KEYS  lock queue waiters meta
-- ARGV  token
-- ->    cancelled
leave_queue(ARGV[1])
load_lock()
wake_next()
return {'cancelled'}
