from tests.support.thread_fixture import one_thread as one_thread
