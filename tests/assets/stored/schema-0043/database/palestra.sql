BEGIN TRANSACTION;
CREATE TABLE alembic_version (
	version_num VARCHAR(32) NOT NULL, 
	CONSTRAINT alembic_version_pkc PRIMARY KEY (version_num)
);
INSERT INTO "alembic_version" VALUES('0043');
CREATE TABLE artifacts (
	id VARCHAR(64) NOT NULL, 
	project_id VARCHAR(64) NOT NULL, 
	run_id VARCHAR(64) NOT NULL, 
	attempt_id VARCHAR(64) NOT NULL, 
	folder VARCHAR(64) NOT NULL, 
	name VARCHAR(1024) NOT NULL, 
	kind VARCHAR(16) NOT NULL, 
	size BIGINT NOT NULL, 
	sha256 VARCHAR(64) NOT NULL, 
	blob_id VARCHAR(64), 
	created_at BIGINT NOT NULL, env_step BIGINT, 
	CONSTRAINT pk_artifacts PRIMARY KEY (id), 
	CONSTRAINT fk_artifacts_attempt_id FOREIGN KEY(attempt_id) REFERENCES attempts (id) ON DELETE CASCADE, 
	CONSTRAINT fk_artifacts_blob_id FOREIGN KEY(blob_id) REFERENCES blobs (id), 
	CONSTRAINT fk_artifacts_project_id FOREIGN KEY(project_id) REFERENCES projects (id) ON DELETE CASCADE, 
	CONSTRAINT fk_artifacts_run_id FOREIGN KEY(run_id) REFERENCES runs (id) ON DELETE CASCADE, 
	CONSTRAINT uq_artifacts_attempt_id_run_id_folder_name UNIQUE (attempt_id, run_id, folder, name)
);
INSERT INTO "artifacts" VALUES('art_01m8ngq382ehrv1t10cpy26055','prj_01m8ngq2aeff5873dagdg1vz5v','run_01m8ngq2p4f38v31fb57tfnp37','att_01m8ngq32gfj8tb1251nwrmg2w','snp_01m8ngq36web4rq1sra08dw255','state','snapshot',42,'24c9f20726d5555cac3e42740692669fe0202a82a304fe14d1192786f6b07a35','aa866cd22a01ce21e11942579195f391',1796018507012013,NULL);
INSERT INTO "artifacts" VALUES('art_01m8ngq3a7f9xvvhz7322nmnnj','prj_01m8ngq2aeff5873dagdg1vz5v','run_01m8ngq2p4f38v31fb57tfnp37','att_01m8ngq32gfj8tb1251nwrmg2w','snp_01m8ngq36web4rq1sra08dw255','memory','snapshot',6,'a4d26868017c0ccffe2efe50944ef4211834660cca834c6e9f86dec6a88246fa','562ed6f932c648bc26270575cbd5e851',1796018507081013,NULL);
CREATE TABLE attempt_runs (
	attempt_id VARCHAR(64) NOT NULL, 
	run_id VARCHAR(64) NOT NULL, 
	fence BIGINT NOT NULL, 
	training BOOLEAN NOT NULL, 
	live_training BOOLEAN NOT NULL, 
	snapshot_id VARCHAR(64), 
	CONSTRAINT pk_attempt_runs PRIMARY KEY (attempt_id, run_id), 
	CONSTRAINT fk_attempt_runs_attempt_id FOREIGN KEY(attempt_id) REFERENCES attempts (id) ON DELETE CASCADE, 
	CONSTRAINT fk_attempt_runs_run_id FOREIGN KEY(run_id) REFERENCES runs (id) ON DELETE CASCADE
);
INSERT INTO "attempt_runs" VALUES('att_01m8ngq32gfj8tb1251nwrmg2w','run_01m8ngq2p4f38v31fb57tfnp37',1,1,0,NULL);
INSERT INTO "attempt_runs" VALUES('att_01m8ngq3gbem7tpav6x96kdyjt','run_01m8ngq2p4fd78pkt2qmmdc3s6',1,1,0,NULL);
CREATE TABLE attempts (
	id VARCHAR(64) NOT NULL, 
	project_id VARCHAR(64) NOT NULL, 
	job_id VARCHAR(64) NOT NULL, 
	number INTEGER NOT NULL, 
	worker_id VARCHAR(64) NOT NULL, 
	slot INTEGER NOT NULL, 
	boot_id VARCHAR(64) NOT NULL, 
	token_hash VARCHAR(64) NOT NULL, 
	state VARCHAR(16) NOT NULL, 
	outcome VARCHAR(16), 
	cause VARCHAR(32), 
	failure JSON, 
	resume_quality VARCHAR(16), 
	provenance JSON, 
	ran_with JSON NOT NULL, 
	lease_until BIGINT NOT NULL, 
	acked_seq BIGINT NOT NULL, 
	spooled_seq BIGINT NOT NULL, 
	env_step BIGINT NOT NULL, 
	update_count BIGINT NOT NULL, 
	trainer_pid BIGINT, 
	started_at BIGINT NOT NULL, 
	renewed_at BIGINT NOT NULL, 
	ended_at BIGINT, backlog JSON, gives_up BOOLEAN DEFAULT 0 NOT NULL, further_slots JSON, slot_count INTEGER DEFAULT '1' NOT NULL, phase VARCHAR(16), compile VARCHAR(16), 
	CONSTRAINT pk_attempts PRIMARY KEY (id), 
	CONSTRAINT fk_attempts_job_id FOREIGN KEY(job_id) REFERENCES jobs (id) ON DELETE CASCADE, 
	CONSTRAINT fk_attempts_project_id FOREIGN KEY(project_id) REFERENCES projects (id) ON DELETE CASCADE, 
	CONSTRAINT fk_attempts_worker_id FOREIGN KEY(worker_id) REFERENCES workers (id), 
	CONSTRAINT uq_attempts_job_id_number UNIQUE (job_id, number), 
	CONSTRAINT uq_attempts_token_hash UNIQUE (token_hash)
);
INSERT INTO "attempts" VALUES('att_01m8ngq32gfj8tb1251nwrmg2w','prj_01m8ngq2aeff5873dagdg1vz5v','job_01m8ngq2pqeq3bdw4x2z85yt1k',1,'wrk_01m8ngq2ddfz2an1mbbxzmp1n7',0,'boot-1','2968be870b55deeb6407816a89922efbcec9eca6f3c04fdea628f3aceff7cd5d','ended','paused','user',NULL,'fresh','{}','{"code": {"kind": "builtin"}, "palestra": "0.1.0", "packages": {}, "hardware": {}, "gpus": []}',1796018566875984,6,0,0,0,NULL,1796018506839010,1796018506875984,1796018507198011,'{"files": 0, "size": 0, "problem": null, "delivering": false}',0,NULL,1,NULL,NULL);
INSERT INTO "attempts" VALUES('att_01m8ngq3gbem7tpav6x96kdyjt','prj_01m8ngq2aeff5873dagdg1vz5v','job_01m8ngq2pqf0zrc2yqdfywcd6w',1,'wrk_01m8ngq2ddfz2an1mbbxzmp1n7',1,'boot-1','865e50b855e1a33256fbbc29c98f8f84e828a520b723e19087820cc1e3e28ae2','ended','succeeded','budget',NULL,'fresh','{}','{"code": {"kind": "builtin"}, "palestra": "0.1.0", "packages": {}, "hardware": {}, "gpus": []}',1796018567291995,0,0,0,0,NULL,1796018507275982,1796018507291995,1796018507307002,'{"files": 0, "size": 0, "problem": null, "delivering": false}',0,NULL,1,NULL,NULL);
CREATE TABLE audit (
	id INTEGER NOT NULL, 
	project_id VARCHAR(64), 
	actor VARCHAR(96) NOT NULL, 
	user_id VARCHAR(64), 
	credential VARCHAR(64), 
	address VARCHAR(64), 
	action VARCHAR(64) NOT NULL, 
	object_type VARCHAR(32) NOT NULL, 
	object_id VARCHAR(200) NOT NULL, 
	outcome VARCHAR(16) NOT NULL, 
	code VARCHAR(64), 
	count INTEGER NOT NULL, 
	data TEXT NOT NULL, 
	at BIGINT NOT NULL, 
	previous_hash VARCHAR(64) NOT NULL, 
	hash VARCHAR(64) NOT NULL, 
	CONSTRAINT pk_audit PRIMARY KEY (id)
);
INSERT INTO "audit" VALUES(1,NULL,'user:usr_01m8ngq2aeejab104zgtkez2fz','usr_01m8ngq2aeejab104zgtkez2fz',NULL,NULL,'worker.register','worker','wrk_01m8ngq2ddfz2an1mbbxzmp1n7','allowed',NULL,1,'{"host":"host-1","pool":"default","version":"0.1.0"}',1796018506210562,'0000000000000000000000000000000000000000000000000000000000000000','cbc8a000691e50f0a979fa0be409c7926642ea0246e009219efb2b55348952f0');
INSERT INTO "audit" VALUES(2,'prj_01m8ngq2aeff5873dagdg1vz5v','user:usr_01m8ngq2aeejab104zgtkez2fz','usr_01m8ngq2aeejab104zgtkez2fz',NULL,NULL,'experiment.create','experiment','cartpole-dqn-76aec5eba545f136','allowed',NULL,1,'{"definition_hash":"81ea55ba749bb0eeda10c0a7ba3cef4b997b59441e99eb5263cf69b1307c80d8"}',1796018506550360,'cbc8a000691e50f0a979fa0be409c7926642ea0246e009219efb2b55348952f0','9acd3b9592eb74f0eca64b1618709c58ec241ce7f32f5f7723e1f18e28ab7a6b');
INSERT INTO "audit" VALUES(3,'prj_01m8ngq2aeff5873dagdg1vz5v','worker:wrk_01m8ngq2ddfz2an1mbbxzmp1n7',NULL,'wrk_01m8ngq2ddfz2an1mbbxzmp1n7',NULL,'job.move','job','job_01m8ngq2pqeq3bdw4x2z85yt1k','allowed',NULL,1,'{"attempt":1,"from":"queued","to":"starting"}',1796018506853398,'9acd3b9592eb74f0eca64b1618709c58ec241ce7f32f5f7723e1f18e28ab7a6b','105e9830eb591dff91056309eee7a24f95a00f8718306db6be2aad974346e0d2');
INSERT INTO "audit" VALUES(4,'prj_01m8ngq2aeff5873dagdg1vz5v','attempt:att_01m8ngq32gfj8tb1251nwrmg2w',NULL,'att_01m8ngq32gfj8tb1251nwrmg2w',NULL,'job.move','job','job_01m8ngq2pqeq3bdw4x2z85yt1k','allowed',NULL,1,'{"attempt":1,"from":"starting","to":"running"}',1796018506892647,'105e9830eb591dff91056309eee7a24f95a00f8718306db6be2aad974346e0d2','07bcd1fc290063c4a2fa074e1d6e2f984916aa89afbc6bb08dd2e1f6948ef2d9');
INSERT INTO "audit" VALUES(5,'prj_01m8ngq2aeff5873dagdg1vz5v','user:usr_01m8ngq2aeejab104zgtkez2fz','usr_01m8ngq2aeejab104zgtkez2fz',NULL,NULL,'job.move','job','job_01m8ngq2pqeq3bdw4x2z85yt1k','allowed',NULL,1,'{"attempt":1,"cause":"user","from":"running","to":"pausing"}',1796018507171778,'07bcd1fc290063c4a2fa074e1d6e2f984916aa89afbc6bb08dd2e1f6948ef2d9','c96ac16cd4d5bfdd7214ae508cacb64d7691e384e2d9fbd2feb017feddd3e6c9');
INSERT INTO "audit" VALUES(6,'prj_01m8ngq2aeff5873dagdg1vz5v','attempt:att_01m8ngq32gfj8tb1251nwrmg2w',NULL,'att_01m8ngq32gfj8tb1251nwrmg2w',NULL,'job.move','job','job_01m8ngq2pqeq3bdw4x2z85yt1k','allowed',NULL,1,'{"attempt":1,"cause":"user","from":"pausing","to":"paused"}',1796018507236503,'c96ac16cd4d5bfdd7214ae508cacb64d7691e384e2d9fbd2feb017feddd3e6c9','a00e62a7225a090bc744c158775aceef3d4dd6c157b8560f1e12c2049a89a2c8');
INSERT INTO "audit" VALUES(7,'prj_01m8ngq2aeff5873dagdg1vz5v','worker:wrk_01m8ngq2ddfz2an1mbbxzmp1n7',NULL,'wrk_01m8ngq2ddfz2an1mbbxzmp1n7',NULL,'job.move','job','job_01m8ngq2pqf0zrc2yqdfywcd6w','allowed',NULL,1,'{"attempt":1,"from":"queued","to":"starting"}',1796018507279328,'a00e62a7225a090bc744c158775aceef3d4dd6c157b8560f1e12c2049a89a2c8','e858b222d4e6829c35993e9ca75c93940f77725b06991ebae664f27e7f98afcf');
INSERT INTO "audit" VALUES(8,'prj_01m8ngq2aeff5873dagdg1vz5v','attempt:att_01m8ngq3gbem7tpav6x96kdyjt',NULL,'att_01m8ngq3gbem7tpav6x96kdyjt',NULL,'job.move','job','job_01m8ngq2pqf0zrc2yqdfywcd6w','allowed',NULL,1,'{"attempt":1,"from":"starting","to":"running"}',1796018507297185,'e858b222d4e6829c35993e9ca75c93940f77725b06991ebae664f27e7f98afcf','b3e69f4dca0390e19e2adffef356480ddd07fcabfc3e2f400d7ee7c368b419a5');
INSERT INTO "audit" VALUES(9,'prj_01m8ngq2aeff5873dagdg1vz5v','attempt:att_01m8ngq3gbem7tpav6x96kdyjt',NULL,'att_01m8ngq3gbem7tpav6x96kdyjt',NULL,'job.move','job','job_01m8ngq2pqf0zrc2yqdfywcd6w','allowed',NULL,1,'{"attempt":1,"cause":"budget","from":"running","to":"succeeded"}',1796018507321533,'b3e69f4dca0390e19e2adffef356480ddd07fcabfc3e2f400d7ee7c368b419a5','37533f3e21c763bea0119836fa8f526df641ce900cabb45a9f0a15cb70de7438');
CREATE TABLE audit_chain (
	id INTEGER NOT NULL, 
	last_id BIGINT NOT NULL, 
	last_hash VARCHAR(64) NOT NULL, 
	checkpoint_id BIGINT NOT NULL, 
	checkpoint_hash VARCHAR(64) NOT NULL, 
	CONSTRAINT pk_audit_chain PRIMARY KEY (id)
);
INSERT INTO "audit_chain" VALUES(1,9,'37533f3e21c763bea0119836fa8f526df641ce900cabb45a9f0a15cb70de7438',0,'0000000000000000000000000000000000000000000000000000000000000000');
CREATE TABLE blobs (
	id VARCHAR(64) NOT NULL, 
	project_id VARCHAR(64) NOT NULL, 
	sha256 VARCHAR(64) NOT NULL, 
	size BIGINT NOT NULL, 
	created_at BIGINT NOT NULL, 
	CONSTRAINT pk_blobs PRIMARY KEY (id), 
	CONSTRAINT fk_blobs_project_id FOREIGN KEY(project_id) REFERENCES projects (id) ON DELETE CASCADE, 
	CONSTRAINT uq_blobs_project_id_sha256_size UNIQUE (project_id, sha256, size)
);
INSERT INTO "blobs" VALUES('aa866cd22a01ce21e11942579195f391','prj_01m8ngq2aeff5873dagdg1vz5v','24c9f20726d5555cac3e42740692669fe0202a82a304fe14d1192786f6b07a35',42,1796018507048987);
INSERT INTO "blobs" VALUES('562ed6f932c648bc26270575cbd5e851','prj_01m8ngq2aeff5873dagdg1vz5v','a4d26868017c0ccffe2efe50944ef4211834660cca834c6e9f86dec6a88246fa',6,1796018507103986);
CREATE TABLE curve_blocks (
	id INTEGER NOT NULL, 
	series_id BIGINT NOT NULL, 
	attempt_id VARCHAR(64) NOT NULL, 
	fence BIGINT NOT NULL, 
	first_seq BIGINT NOT NULL, 
	last_seq BIGINT NOT NULL, 
	points INTEGER NOT NULL, 
	env_step_low BIGINT NOT NULL, 
	env_step_high BIGINT NOT NULL, 
	update_low BIGINT NOT NULL, 
	update_high BIGINT NOT NULL, 
	episode_low BIGINT NOT NULL, 
	episode_high BIGINT NOT NULL, 
	wall_low BIGINT NOT NULL, 
	wall_high BIGINT NOT NULL, 
	levels BIGINT NOT NULL, 
	content BLOB NOT NULL, 
	CONSTRAINT pk_curve_blocks PRIMARY KEY (id), 
	CONSTRAINT fk_curve_blocks_series_id FOREIGN KEY(series_id) REFERENCES series (id) ON DELETE CASCADE
);
CREATE TABLE curve_rollups (
	series_id BIGINT NOT NULL, 
	axis SMALLINT NOT NULL, 
	level SMALLINT NOT NULL, 
	block_id BIGINT NOT NULL, 
	cells BLOB NOT NULL, 
	CONSTRAINT pk_curve_rollups PRIMARY KEY (series_id, axis, level, block_id), 
	CONSTRAINT fk_curve_rollups_series_id FOREIGN KEY(series_id) REFERENCES series (id) ON DELETE CASCADE
)
 WITHOUT ROWID

;
CREATE TABLE curve_tails (
	id INTEGER NOT NULL, 
	run_id VARCHAR(64) NOT NULL, 
	attempt_id VARCHAR(64) NOT NULL, 
	fence BIGINT NOT NULL, 
	first_seq BIGINT NOT NULL, 
	last_seq BIGINT NOT NULL, 
	points INTEGER NOT NULL, 
	received_at BIGINT NOT NULL, 
	content BLOB NOT NULL, 
	CONSTRAINT pk_curve_tails PRIMARY KEY (id), 
	CONSTRAINT fk_curve_tails_run_id FOREIGN KEY(run_id) REFERENCES runs (id) ON DELETE CASCADE
);
INSERT INTO "curve_tails" VALUES(1,'run_01m8ngq2p4f38v31fb57tfnp37','att_01m8ngq32gfj8tb1251nwrmg2w',1,1,3,55,1796018506930983,X'5B7B226E223A34392C226E616D6573223A5B226C6F73732F7464225D2C226578747261223A7B7D7D2C7B226E223A332C226E616D6573223A5B22657069736F64652F72657475726E222C22657069736F64652F6C656E677468225D2C226578747261223A7B22657069736F64652F6C656E677468223A5B22656E765F696E646578222C227465726D696E61746564225D7D7D5D0A01000000000000000100000000000000010000000000000001000000000000000100000000000000010000000000000001000000000000000100000000000000010000000000000001000000000000000100000000000000010000000000000001000000000000000100000000000000010000000000000001000000000000000100000000000000010000000000000001000000000000000100000000000000010000000000000001000000000000000100000000000000010000000000000001000000000000000100000000000000010000000000000001000000000000000100000000000000010000000000000001000000000000000100000000000000010000000000000001000000000000000100000000000000010000000000000001000000000000000100000000000000010000000000000001000000000000000100000000000000010000000000000001000000000000000100000000000000010000000000000001000000000000000100000000000000010000000000000001000000000000000100000000000000020000000000000003000000000000000400000000000000050000000000000006000000000000000700000000000000080000000000000009000000000000000A000000000000000B000000000000000C000000000000000D000000000000000E000000000000000F0000000000000010000000000000001100000000000000120000000000000013000000000000001400000000000000150000000000000016000000000000001700000000000000180000000000000019000000000000001A000000000000001B000000000000001C000000000000001D000000000000001E000000000000001F0000000000000020000000000000002100000000000000220000000000000023000000000000002400000000000000250000000000000026000000000000002700000000000000280000000000000029000000000000002A000000000000002B000000000000002C000000000000002D000000000000002E000000000000002F000000000000003000000000000000310000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000F03F000000000000004000000000000008400000000000001040000000000000144000000000000018400000000000001C40000000000000204000000000000022400000000000002440000000000000264000000000000028400000000000002A400000000000002C400000000000002E4000000000000030400000000000003140000000000000324000000000000033400000000000003440000000000000354000000000000036400000000000003740000000000000384000000000000039400000000000003A400000000000003B400000000000003C400000000000003D400000000000003E400000000000003F40000000000000404000000000008040400000000000004140000000000080414000000000000042400000000000804240000000000000434000000000008043400000000000004440000000000080444000000000000045400000000000804540000000000000464000000000008046400000000000004740000000000080474000000000000048400000000000804840000000000000F03F000000000000004000000000000008400000000000001040000000000000144000000000000018400000000000001C40000000000000204000000000000022400000000000002440000000000000264000000000000028400000000000002A400000000000002C400000000000002E4000000000000030400000000000003140000000000000324000000000000033400000000000003440000000000000354000000000000036400000000000003740000000000000384000000000000039400000000000003A400000000000003B400000000000003C400000000000003D400000000000003E400000000000003F400000000000004040000000000080404000000000000041400000000000804140000000000000424000000000008042400000000000004340000000000080434000000000000044400000000000804440000000000000454000000000008045400000000000004640000000000080464000000000000047400000000000804740000000000000484000000000008048400200000000000000020000000000000002000000000000000A0000000000000014000000000000001E00000000000000000000000000000000000000000000000000000000000000010000000000000002000000000000000300000000000000000000000000F03F000000000000F03F000000000000F03F000000000000F03F00000000000000400000000000000840000000000000244000000000000024400000000000002440000000000000000000000000000000000000000000000000010000000000000001000000000000000100000000000000');
CREATE TABLE definition_members (
	project_id VARCHAR(64) NOT NULL, 
	experiment_id VARCHAR(64) NOT NULL, 
	path VARCHAR(128) NOT NULL, 
	text VARCHAR(256) NOT NULL, 
	number FLOAT, 
	CONSTRAINT pk_definition_members PRIMARY KEY (project_id, experiment_id, path), 
	CONSTRAINT fk_definition_members_project_id_experiment_id FOREIGN KEY(project_id, experiment_id) REFERENCES experiments (project_id, id) ON DELETE CASCADE
)
 WITHOUT ROWID

;
INSERT INTO "definition_members" VALUES('prj_01m8ngq2aeff5873dagdg1vz5v','cartpole-dqn-76aec5eba545f136','agent.activation','relu',NULL);
INSERT INTO "definition_members" VALUES('prj_01m8ngq2aeff5873dagdg1vz5v','cartpole-dqn-76aec5eba545f136','agent.adam_epsilon','1e-08',1.0e-08);
INSERT INTO "definition_members" VALUES('prj_01m8ngq2aeff5873dagdg1vz5v','cartpole-dqn-76aec5eba545f136','agent.batch_size','64',64.0);
INSERT INTO "definition_members" VALUES('prj_01m8ngq2aeff5873dagdg1vz5v','cartpole-dqn-76aec5eba545f136','agent.buffer_size','100000',100000.0);
INSERT INTO "definition_members" VALUES('prj_01m8ngq2aeff5873dagdg1vz5v','cartpole-dqn-76aec5eba545f136','agent.double','true',NULL);
INSERT INTO "definition_members" VALUES('prj_01m8ngq2aeff5873dagdg1vz5v','cartpole-dqn-76aec5eba545f136','agent.dueling','false',NULL);
INSERT INTO "definition_members" VALUES('prj_01m8ngq2aeff5873dagdg1vz5v','cartpole-dqn-76aec5eba545f136','agent.epsilon_decay_steps','10000',10000.0);
INSERT INTO "definition_members" VALUES('prj_01m8ngq2aeff5873dagdg1vz5v','cartpole-dqn-76aec5eba545f136','agent.epsilon_end','0.05',0.05);
INSERT INTO "definition_members" VALUES('prj_01m8ngq2aeff5873dagdg1vz5v','cartpole-dqn-76aec5eba545f136','agent.epsilon_start','1.0',1.0);
INSERT INTO "definition_members" VALUES('prj_01m8ngq2aeff5873dagdg1vz5v','cartpole-dqn-76aec5eba545f136','agent.gamma','0.99',0.99);
INSERT INTO "definition_members" VALUES('prj_01m8ngq2aeff5873dagdg1vz5v','cartpole-dqn-76aec5eba545f136','agent.hidden_sizes','[64,64]',NULL);
INSERT INTO "definition_members" VALUES('prj_01m8ngq2aeff5873dagdg1vz5v','cartpole-dqn-76aec5eba545f136','agent.learning_rate','0.001',0.001);
INSERT INTO "definition_members" VALUES('prj_01m8ngq2aeff5873dagdg1vz5v','cartpole-dqn-76aec5eba545f136','agent.learning_starts','1000',1000.0);
INSERT INTO "definition_members" VALUES('prj_01m8ngq2aeff5873dagdg1vz5v','cartpole-dqn-76aec5eba545f136','agent.loss','huber',NULL);
INSERT INTO "definition_members" VALUES('prj_01m8ngq2aeff5873dagdg1vz5v','cartpole-dqn-76aec5eba545f136','agent.max_grad_norm','10.0',10.0);
INSERT INTO "definition_members" VALUES('prj_01m8ngq2aeff5873dagdg1vz5v','cartpole-dqn-76aec5eba545f136','agent.n_step','1',1.0);
INSERT INTO "definition_members" VALUES('prj_01m8ngq2aeff5873dagdg1vz5v','cartpole-dqn-76aec5eba545f136','agent.name','dqn',NULL);
INSERT INTO "definition_members" VALUES('prj_01m8ngq2aeff5873dagdg1vz5v','cartpole-dqn-76aec5eba545f136','agent.noisy','false',NULL);
INSERT INTO "definition_members" VALUES('prj_01m8ngq2aeff5873dagdg1vz5v','cartpole-dqn-76aec5eba545f136','agent.prioritized','null',NULL);
INSERT INTO "definition_members" VALUES('prj_01m8ngq2aeff5873dagdg1vz5v','cartpole-dqn-76aec5eba545f136','agent.target_update_every','500',500.0);
INSERT INTO "definition_members" VALUES('prj_01m8ngq2aeff5873dagdg1vz5v','cartpole-dqn-76aec5eba545f136','agent.train_every','1',1.0);
INSERT INTO "definition_members" VALUES('prj_01m8ngq2aeff5873dagdg1vz5v','cartpole-dqn-76aec5eba545f136','agent.updates_per_train','1',1.0);
INSERT INTO "definition_members" VALUES('prj_01m8ngq2aeff5873dagdg1vz5v','cartpole-dqn-76aec5eba545f136','env.id','CartPole-v1',NULL);
INSERT INTO "definition_members" VALUES('prj_01m8ngq2aeff5873dagdg1vz5v','cartpole-dqn-76aec5eba545f136','env.kwargs','{}',NULL);
INSERT INTO "definition_members" VALUES('prj_01m8ngq2aeff5873dagdg1vz5v','cartpole-dqn-76aec5eba545f136','env.max_episode_steps','null',NULL);
INSERT INTO "definition_members" VALUES('prj_01m8ngq2aeff5873dagdg1vz5v','cartpole-dqn-76aec5eba545f136','env.num_envs','1',1.0);
INSERT INTO "definition_members" VALUES('prj_01m8ngq2aeff5873dagdg1vz5v','cartpole-dqn-76aec5eba545f136','env.vectorization','sync',NULL);
INSERT INTO "definition_members" VALUES('prj_01m8ngq2aeff5873dagdg1vz5v','cartpole-dqn-76aec5eba545f136','evaluation.during_episode','true',NULL);
INSERT INTO "definition_members" VALUES('prj_01m8ngq2aeff5873dagdg1vz5v','cartpole-dqn-76aec5eba545f136','evaluation.episodes','10',10.0);
INSERT INTO "definition_members" VALUES('prj_01m8ngq2aeff5873dagdg1vz5v','cartpole-dqn-76aec5eba545f136','evaluation.every_env_steps','5000',5000.0);
INSERT INTO "definition_members" VALUES('prj_01m8ngq2aeff5873dagdg1vz5v','cartpole-dqn-76aec5eba545f136','evaluation.max_episode_steps','null',NULL);
INSERT INTO "definition_members" VALUES('prj_01m8ngq2aeff5873dagdg1vz5v','cartpole-dqn-76aec5eba545f136','evaluation.steps','null',NULL);
INSERT INTO "definition_members" VALUES('prj_01m8ngq2aeff5873dagdg1vz5v','cartpole-dqn-76aec5eba545f136','export.formats','[]',NULL);
INSERT INTO "definition_members" VALUES('prj_01m8ngq2aeff5873dagdg1vz5v','cartpole-dqn-76aec5eba545f136','hooks','[{"name":"nan_guard","updates":100}]',NULL);
INSERT INTO "definition_members" VALUES('prj_01m8ngq2aeff5873dagdg1vz5v','cartpole-dqn-76aec5eba545f136','kind','rl',NULL);
INSERT INTO "definition_members" VALUES('prj_01m8ngq2aeff5873dagdg1vz5v','cartpole-dqn-76aec5eba545f136','loop.env_steps','10000',10000.0);
INSERT INTO "definition_members" VALUES('prj_01m8ngq2aeff5873dagdg1vz5v','cartpole-dqn-76aec5eba545f136','loop.episodes','null',NULL);
INSERT INTO "definition_members" VALUES('prj_01m8ngq2aeff5873dagdg1vz5v','cartpole-dqn-76aec5eba545f136','loop.epoch_env_steps','1000',1000.0);
INSERT INTO "definition_members" VALUES('prj_01m8ngq2aeff5873dagdg1vz5v','cartpole-dqn-76aec5eba545f136','loop.updates','null',NULL);
INSERT INTO "definition_members" VALUES('prj_01m8ngq2aeff5873dagdg1vz5v','cartpole-dqn-76aec5eba545f136','name','CartPole DQN',NULL);
INSERT INTO "definition_members" VALUES('prj_01m8ngq2aeff5873dagdg1vz5v','cartpole-dqn-76aec5eba545f136','notes','',NULL);
INSERT INTO "definition_members" VALUES('prj_01m8ngq2aeff5873dagdg1vz5v','cartpole-dqn-76aec5eba545f136','schema_version','2',2.0);
INSERT INTO "definition_members" VALUES('prj_01m8ngq2aeff5873dagdg1vz5v','cartpole-dqn-76aec5eba545f136','snapshot.every_env_steps','10000',10000.0);
INSERT INTO "definition_members" VALUES('prj_01m8ngq2aeff5873dagdg1vz5v','cartpole-dqn-76aec5eba545f136','snapshot.keep_best','true',NULL);
INSERT INTO "definition_members" VALUES('prj_01m8ngq2aeff5873dagdg1vz5v','cartpole-dqn-76aec5eba545f136','snapshot.keep_last','2',2.0);
INSERT INTO "definition_members" VALUES('prj_01m8ngq2aeff5873dagdg1vz5v','cartpole-dqn-76aec5eba545f136','snapshot.memory','full',NULL);
INSERT INTO "definition_members" VALUES('prj_01m8ngq2aeff5873dagdg1vz5v','cartpole-dqn-76aec5eba545f136','stop.success_evaluations','1',1.0);
INSERT INTO "definition_members" VALUES('prj_01m8ngq2aeff5873dagdg1vz5v','cartpole-dqn-76aec5eba545f136','stop.success_score','null',NULL);
CREATE TABLE dispatcher_lease (
	id INTEGER NOT NULL, 
	epoch INTEGER NOT NULL, 
	holder VARCHAR(160) NOT NULL, 
	taken_at BIGINT NOT NULL, 
	held_until BIGINT NOT NULL, 
	CONSTRAINT pk_dispatcher_lease PRIMARY KEY (id)
);
CREATE TABLE enrolment_tokens (
	id VARCHAR(64) NOT NULL, 
	pool_id VARCHAR(64) NOT NULL, 
	name VARCHAR(64) NOT NULL, 
	secret_hash VARCHAR(64) NOT NULL, 
	created_by VARCHAR(64), 
	created_at BIGINT NOT NULL, 
	expires_at BIGINT, 
	last_used_at BIGINT, 
	revoked_at BIGINT, 
	CONSTRAINT pk_enrolment_tokens PRIMARY KEY (id), 
	CONSTRAINT fk_enrolment_tokens_pool_id FOREIGN KEY(pool_id) REFERENCES pools (id) ON DELETE CASCADE, 
	CONSTRAINT uq_enrolment_tokens_secret_hash UNIQUE (secret_hash)
);
CREATE TABLE epoch_blocks (
	id INTEGER NOT NULL, 
	run_id VARCHAR(64) NOT NULL, 
	attempt_id VARCHAR(64) NOT NULL, 
	fence BIGINT NOT NULL, 
	first_seq BIGINT NOT NULL, 
	last_seq BIGINT NOT NULL, 
	epochs INTEGER NOT NULL, 
	text_bytes INTEGER NOT NULL, 
	content BLOB NOT NULL, 
	CONSTRAINT pk_epoch_blocks PRIMARY KEY (id), 
	CONSTRAINT fk_epoch_blocks_run_id FOREIGN KEY(run_id) REFERENCES runs (id) ON DELETE CASCADE
);
CREATE TABLE epoch_stats (
	attempt_id VARCHAR(64) NOT NULL, 
	seq BIGINT NOT NULL, 
	run_id VARCHAR(64) NOT NULL, 
	fence BIGINT NOT NULL, 
	body TEXT NOT NULL, 
	CONSTRAINT pk_epoch_stats PRIMARY KEY (attempt_id, seq), 
	CONSTRAINT fk_epoch_stats_attempt_id FOREIGN KEY(attempt_id) REFERENCES attempts (id) ON DELETE CASCADE, 
	CONSTRAINT fk_epoch_stats_run_id FOREIGN KEY(run_id) REFERENCES runs (id) ON DELETE CASCADE
);
INSERT INTO "epoch_stats" VALUES('att_01m8ngq32gfj8tb1251nwrmg2w',5,'run_01m8ngq2p4f38v31fb57tfnp37',1,'{"run":"run_01m8ngq2p4f38v31fb57tfnp37","type":"experiment_stats","total_epoch":1,"total_itr":5,"total_env_steps":40,"last_episode":null,"update":3,"episode":2,"wall":1.0}');
CREATE TABLE evaluations (
	id VARCHAR(64) NOT NULL, 
	project_id VARCHAR(64) NOT NULL, 
	experiment_id VARCHAR(64) NOT NULL, 
	run_id VARCHAR(64) NOT NULL, 
	job_id VARCHAR(64) NOT NULL, 
	attempt_id VARCHAR(64) NOT NULL, 
	snapshot_id VARCHAR(64), 
	fence BIGINT NOT NULL, 
	seq BIGINT NOT NULL, 
	env_step BIGINT NOT NULL, 
	update_count BIGINT NOT NULL, 
	score FLOAT, 
	superseded BOOLEAN NOT NULL, 
	body TEXT NOT NULL, 
	created_at BIGINT NOT NULL, source VARCHAR(16) DEFAULT 'evaluation' NOT NULL, 
	CONSTRAINT pk_evaluations PRIMARY KEY (id), 
	CONSTRAINT fk_evaluations_attempt_id FOREIGN KEY(attempt_id) REFERENCES attempts (id) ON DELETE CASCADE, 
	CONSTRAINT fk_evaluations_run_id FOREIGN KEY(run_id) REFERENCES runs (id) ON DELETE CASCADE, 
	CONSTRAINT uq_evaluations_attempt_id_seq UNIQUE (attempt_id, seq)
);
INSERT INTO "evaluations" VALUES('evl_01m8ngq360ent9p2ed93fsp08r','prj_01m8ngq2aeff5873dagdg1vz5v','cartpole-dqn-76aec5eba545f136','run_01m8ngq2p4f38v31fb57tfnp37','job_01m8ngq2pqeq3bdw4x2z85yt1k','att_01m8ngq32gfj8tb1251nwrmg2w',NULL,1,4,40,0,12.5,0,X'0128B52FFD60820075030014026E67713270346633387633316662353774666E703337343030312E7331322E31371E0052B8A828EE811B2CDCAE842F3074AF41162E704500E1A490C54D0E066400E7250338E032002EE80CE0A501051A00648819A097CCE4D1819DF774366BA622CF64AE34DD30189B1A5940',1796018506948002,'evaluation');
CREATE TABLE events (
	id INTEGER NOT NULL PRIMARY KEY AUTOINCREMENT, 
	project_id VARCHAR(64), 
	type VARCHAR(16) NOT NULL, 
	experiment_id VARCHAR(64), 
	run_id VARCHAR(64), 
	job_id VARCHAR(64), 
	data JSON NOT NULL, 
	at BIGINT NOT NULL
);
INSERT INTO "events" VALUES(1,NULL,'worker',NULL,NULL,NULL,'{"id": "wrk_01m8ngq2ddfz2an1mbbxzmp1n7", "name": "w1", "pool": "default", "host": "host-1", "state": "online", "version": "0.1.0", "slots": [{"index": 0, "attempt_id": null, "job_id": null, "run_ids": [], "busy": false, "user": null, "project": null}, {"index": 1, "attempt_id": null, "job_id": null, "run_ids": [], "busy": false, "user": null, "project": null}, {"index": 2, "attempt_id": null, "job_id": null, "run_ids": [], "busy": false, "user": null, "project": null}, {"index": 3, "attempt_id": null, "job_id": null, "run_ids": [], "busy": false, "user": null, "project": null}, {"index": 4, "attempt_id": null, "job_id": null, "run_ids": [], "busy": false, "user": null, "project": null}, {"index": 5, "attempt_id": null, "job_id": null, "run_ids": [], "busy": false, "user": null, "project": null}, {"index": 6, "attempt_id": null, "job_id": null, "run_ids": [], "busy": false, "user": null, "project": null}, {"index": 7, "attempt_id": null, "job_id": null, "run_ids": [], "busy": false, "user": null, "project": null}, {"index": 8, "attempt_id": null, "job_id": null, "run_ids": [], "busy": false, "user": null, "project": null}, {"index": 9, "attempt_id": null, "job_id": null, "run_ids": [], "busy": false, "user": null, "project": null}, {"index": 10, "attempt_id": null, "job_id": null, "run_ids": [], "busy": false, "user": null, "project": null}, {"index": 11, "attempt_id": null, "job_id": null, "run_ids": [], "busy": false, "user": null, "project": null}], "gpus": [], "registered_at": "2026-11-30T06:01:46.171985Z", "last_heartbeat_at": "2026-11-30T06:01:46.171985Z", "secret_rotation": null, "secret_since": null, "clock_skew_seconds": null, "has_wrong_clock": false, "drain_reason": null}',1796018506212983);
INSERT INTO "events" VALUES(2,'prj_01m8ngq2aeff5873dagdg1vz5v','job','cartpole-dqn-76aec5eba545f136','run_01m8ngq2p4f38v31fb57tfnp37','job_01m8ngq2pqeq3bdw4x2z85yt1k','{"id": "job_01m8ngq2pqeq3bdw4x2z85yt1k", "experiment_id": "cartpole-dqn-76aec5eba545f136", "schedule": "train", "state": "queued", "cause": null, "failure": null, "pool": "default", "priority_class": "normal", "priority": 0, "resources": {"gpus": 0, "cpu_threads": 1, "memory_mib": null, "compile": "auto", "pack": "off", "evaluation": "inline"}, "limits": {"wall_seconds": null, "stall_seconds": 1800, "grace_seconds": 120, "max_attempts": 20}, "attempts": 0, "run_ids": ["run_01m8ngq2p4f38v31fb57tfnp37"], "started_at": null, "finished_at": null}',1796018506550981);
INSERT INTO "events" VALUES(3,'prj_01m8ngq2aeff5873dagdg1vz5v','job','cartpole-dqn-76aec5eba545f136','run_01m8ngq2p4fd78pkt2qmmdc3s6','job_01m8ngq2pqf0zrc2yqdfywcd6w','{"id": "job_01m8ngq2pqf0zrc2yqdfywcd6w", "experiment_id": "cartpole-dqn-76aec5eba545f136", "schedule": "train", "state": "queued", "cause": null, "failure": null, "pool": "default", "priority_class": "normal", "priority": 0, "resources": {"gpus": 0, "cpu_threads": 1, "memory_mib": null, "compile": "auto", "pack": "off", "evaluation": "inline"}, "limits": {"wall_seconds": null, "stall_seconds": 1800, "grace_seconds": 120, "max_attempts": 20}, "attempts": 0, "run_ids": ["run_01m8ngq2p4fd78pkt2qmmdc3s6"], "started_at": null, "finished_at": null}',1796018506550981);
INSERT INTO "events" VALUES(4,'prj_01m8ngq2aeff5873dagdg1vz5v','run','cartpole-dqn-76aec5eba545f136','run_01m8ngq2p4f38v31fb57tfnp37','job_01m8ngq2pqeq3bdw4x2z85yt1k','{"id": "run_01m8ngq2p4f38v31fb57tfnp37", "experiment_id": "cartpole-dqn-76aec5eba545f136", "seed": 0, "replicate": 0, "state": "queued", "cause": null, "failure": null, "fence": 0, "resume_quality": null, "job_id": "job_01m8ngq2pqeq3bdw4x2z85yt1k", "started_at": null, "finished_at": null}',1796018506550981);
INSERT INTO "events" VALUES(5,'prj_01m8ngq2aeff5873dagdg1vz5v','run','cartpole-dqn-76aec5eba545f136','run_01m8ngq2p4fd78pkt2qmmdc3s6','job_01m8ngq2pqf0zrc2yqdfywcd6w','{"id": "run_01m8ngq2p4fd78pkt2qmmdc3s6", "experiment_id": "cartpole-dqn-76aec5eba545f136", "seed": 1, "replicate": 0, "state": "queued", "cause": null, "failure": null, "fence": 0, "resume_quality": null, "job_id": "job_01m8ngq2pqf0zrc2yqdfywcd6w", "started_at": null, "finished_at": null}',1796018506550981);
INSERT INTO "events" VALUES(6,'prj_01m8ngq2aeff5873dagdg1vz5v','experiment','cartpole-dqn-76aec5eba545f136',NULL,NULL,'{"id": "cartpole-dqn-76aec5eba545f136", "project": "default", "name": "CartPole DQN", "notes": "", "kind": "rl", "agent": "dqn", "env": "CartPole-v1", "schema_version": 2, "definition_hash": "81ea55ba749bb0eeda10c0a7ba3cef4b997b59441e99eb5263cf69b1307c80d8", "code": {"kind": "builtin"}, "state": "queued", "runs": {"queued": 2}, "latest_evaluation": null, "failures": [], "created_at": "2026-11-30T06:01:46.419017Z", "created_by": "admin", "archived_at": null, "max_running": null, "values": {}}',1796018506550981);
INSERT INTO "events" VALUES(7,'prj_01m8ngq2aeff5873dagdg1vz5v','job','cartpole-dqn-76aec5eba545f136','run_01m8ngq2p4f38v31fb57tfnp37','job_01m8ngq2pqeq3bdw4x2z85yt1k','{"id": "job_01m8ngq2pqeq3bdw4x2z85yt1k", "experiment_id": "cartpole-dqn-76aec5eba545f136", "schedule": "train", "state": "starting", "cause": null, "failure": null, "pool": "default", "priority_class": "normal", "priority": 0, "resources": {"gpus": 0, "cpu_threads": 1, "memory_mib": null, "compile": "auto", "pack": "off", "evaluation": "inline"}, "limits": {"wall_seconds": null, "stall_seconds": 1800, "grace_seconds": 120, "max_attempts": 20}, "attempts": 1, "run_ids": ["run_01m8ngq2p4f38v31fb57tfnp37"], "started_at": "2026-11-30T06:01:46.829998Z", "finished_at": null, "not_uploaded": null}',1796018506853011);
INSERT INTO "events" VALUES(8,'prj_01m8ngq2aeff5873dagdg1vz5v','run','cartpole-dqn-76aec5eba545f136','run_01m8ngq2p4f38v31fb57tfnp37','job_01m8ngq2pqeq3bdw4x2z85yt1k','{"id": "run_01m8ngq2p4f38v31fb57tfnp37", "experiment_id": "cartpole-dqn-76aec5eba545f136", "seed": 0, "replicate": 0, "state": "running", "cause": null, "failure": null, "fence": 1, "resume_quality": "fresh", "job_id": "job_01m8ngq2pqeq3bdw4x2z85yt1k", "started_at": "2026-11-30T06:01:46.829998Z", "finished_at": null, "not_uploaded": null, "phase": "starting"}',1796018506854017);
INSERT INTO "events" VALUES(9,'prj_01m8ngq2aeff5873dagdg1vz5v','experiment','cartpole-dqn-76aec5eba545f136',NULL,NULL,'{"id": "cartpole-dqn-76aec5eba545f136"}',1796018506854017);
INSERT INTO "events" VALUES(10,'prj_01m8ngq2aeff5873dagdg1vz5v','attempt','cartpole-dqn-76aec5eba545f136','run_01m8ngq2p4f38v31fb57tfnp37','job_01m8ngq2pqeq3bdw4x2z85yt1k','{"id": "att_01m8ngq32gfj8tb1251nwrmg2w", "job_id": "job_01m8ngq2pqeq3bdw4x2z85yt1k", "number": 1, "worker_id": "wrk_01m8ngq2ddfz2an1mbbxzmp1n7", "worker_name": "w1", "slot": 0, "slots": [0], "state": "starting", "outcome": null, "cause": null, "failure": null, "fences": {"run_01m8ngq2p4f38v31fb57tfnp37": 1}, "resumed_from": {"run_01m8ngq2p4f38v31fb57tfnp37": null}, "resume_quality": null, "other_code": null, "compile": null, "simulator": null, "started_at": "2026-11-30T06:01:46.839010Z", "ended_at": null, "acked_seq": 0}',1796018506854017);
INSERT INTO "events" VALUES(11,'prj_01m8ngq2aeff5873dagdg1vz5v','job','cartpole-dqn-76aec5eba545f136','run_01m8ngq2p4f38v31fb57tfnp37','job_01m8ngq2pqeq3bdw4x2z85yt1k','{"id": "job_01m8ngq2pqeq3bdw4x2z85yt1k", "experiment_id": "cartpole-dqn-76aec5eba545f136", "schedule": "train", "state": "running", "cause": null, "failure": null, "pool": "default", "priority_class": "normal", "priority": 0, "resources": {"gpus": 0, "cpu_threads": 1, "memory_mib": null, "compile": "auto", "pack": "off", "evaluation": "inline"}, "limits": {"wall_seconds": null, "stall_seconds": 1800, "grace_seconds": 120, "max_attempts": 20}, "attempts": 1, "run_ids": ["run_01m8ngq2p4f38v31fb57tfnp37"], "started_at": "2026-11-30T06:01:46.829998Z", "finished_at": null}',1796018506893003);
INSERT INTO "events" VALUES(12,'prj_01m8ngq2aeff5873dagdg1vz5v','run','cartpole-dqn-76aec5eba545f136','run_01m8ngq2p4f38v31fb57tfnp37','job_01m8ngq2pqeq3bdw4x2z85yt1k','{"id": "run_01m8ngq2p4f38v31fb57tfnp37", "experiment_id": "cartpole-dqn-76aec5eba545f136", "seed": 0, "replicate": 0, "state": "running", "cause": null, "failure": null, "fence": 1, "resume_quality": "fresh", "job_id": "job_01m8ngq2pqeq3bdw4x2z85yt1k", "started_at": "2026-11-30T06:01:46.829998Z", "finished_at": null}',1796018506893003);
INSERT INTO "events" VALUES(13,'prj_01m8ngq2aeff5873dagdg1vz5v','experiment','cartpole-dqn-76aec5eba545f136',NULL,NULL,'{"id": "cartpole-dqn-76aec5eba545f136"}',1796018506893003);
INSERT INTO "events" VALUES(14,'prj_01m8ngq2aeff5873dagdg1vz5v','job','cartpole-dqn-76aec5eba545f136','run_01m8ngq2p4f38v31fb57tfnp37','job_01m8ngq2pqeq3bdw4x2z85yt1k','{"id": "job_01m8ngq2pqeq3bdw4x2z85yt1k", "experiment_id": "cartpole-dqn-76aec5eba545f136", "schedule": "train", "state": "running", "cause": null, "failure": null, "pool": "default", "priority_class": "normal", "priority": 0, "resources": {"gpus": 0, "cpu_threads": 1, "memory_mib": null, "compile": "auto", "pack": "off", "evaluation": "inline"}, "limits": {"wall_seconds": null, "stall_seconds": 1800, "grace_seconds": 120, "max_attempts": 20}, "attempts": 1, "run_ids": ["run_01m8ngq2p4f38v31fb57tfnp37"], "started_at": "2026-11-30T06:01:46.829998Z", "finished_at": null, "not_uploaded": null}',1796018506893003);
INSERT INTO "events" VALUES(15,'prj_01m8ngq2aeff5873dagdg1vz5v','run','cartpole-dqn-76aec5eba545f136','run_01m8ngq2p4f38v31fb57tfnp37','job_01m8ngq2pqeq3bdw4x2z85yt1k','{"id": "run_01m8ngq2p4f38v31fb57tfnp37", "experiment_id": "cartpole-dqn-76aec5eba545f136", "seed": 0, "replicate": 0, "state": "running", "cause": null, "failure": null, "fence": 1, "resume_quality": "fresh", "job_id": "job_01m8ngq2pqeq3bdw4x2z85yt1k", "started_at": "2026-11-30T06:01:46.829998Z", "finished_at": null, "not_uploaded": null, "phase": null}',1796018506893003);
INSERT INTO "events" VALUES(16,'prj_01m8ngq2aeff5873dagdg1vz5v','experiment','cartpole-dqn-76aec5eba545f136',NULL,NULL,'{"id": "cartpole-dqn-76aec5eba545f136"}',1796018506893003);
INSERT INTO "events" VALUES(17,'prj_01m8ngq2aeff5873dagdg1vz5v','points','cartpole-dqn-76aec5eba545f136','run_01m8ngq2p4f38v31fb57tfnp37','job_01m8ngq2pqeq3bdw4x2z85yt1k','{"attempt_id": "att_01m8ngq32gfj8tb1251nwrmg2w", "first_seq": 1, "last_seq": 3}',1796018506938990);
INSERT INTO "events" VALUES(18,'prj_01m8ngq2aeff5873dagdg1vz5v','log','cartpole-dqn-76aec5eba545f136','run_01m8ngq2p4f38v31fb57tfnp37','job_01m8ngq2pqeq3bdw4x2z85yt1k','{"block": 1, "last_line": 1}',1796018506938990);
INSERT INTO "events" VALUES(19,'prj_01m8ngq2aeff5873dagdg1vz5v','evaluation','cartpole-dqn-76aec5eba545f136','run_01m8ngq2p4f38v31fb57tfnp37','job_01m8ngq2pqeq3bdw4x2z85yt1k','{"id": "evl_01m8ngq360ent9p2ed93fsp08r", "run_id": "run_01m8ngq2p4f38v31fb57tfnp37", "job_id": "job_01m8ngq2pqeq3bdw4x2z85yt1k", "attempt_id": "att_01m8ngq32gfj8tb1251nwrmg2w", "snapshot_id": null, "env_step": 40, "update": 0, "episode": 1, "wall": 1.0, "episodes": 1, "mean": 12.5, "median": 12.5, "stdev": 0.0, "min": 12.5, "max": 12.5, "length_mean": 1.0, "length_median": 1.0, "length_stdev": 1.0, "length_min": 1.0, "length_max": 1.0, "success_rate": null, "cut_episodes": null, "returns": [12.5], "metrics": {}, "seed": 7, "final": false, "source": "evaluation", "superseded": false, "created_at": "2026-11-30T06:01:46.948002Z"}',1796018506958020);
INSERT INTO "events" VALUES(20,'prj_01m8ngq2aeff5873dagdg1vz5v','stats','cartpole-dqn-76aec5eba545f136','run_01m8ngq2p4f38v31fb57tfnp37','job_01m8ngq2pqeq3bdw4x2z85yt1k','{"total_epoch": 1, "total_itr": 5, "total_env_steps": 40, "last_episode": null, "update": 3, "episode": 2, "wall": 1.0, "attempt_id": "att_01m8ngq32gfj8tb1251nwrmg2w", "fence": 1, "seq": 5}',1796018506958020);
INSERT INTO "events" VALUES(21,'prj_01m8ngq2aeff5873dagdg1vz5v','snapshot','cartpole-dqn-76aec5eba545f136','run_01m8ngq2p4f38v31fb57tfnp37',NULL,'{"id": "snp_01m8ngq36web4rq1sra08dw255", "run_id": "run_01m8ngq2p4f38v31fb57tfnp37", "attempt_id": "att_01m8ngq32gfj8tb1251nwrmg2w", "state": "uploading", "reason": "periodic", "env_step": 40, "update": 0, "episode": 0, "fence": 1, "score": 12.5, "resume_exact": true, "best": false, "newest": false, "superseded": false, "size": 48, "files": [{"name": "memory", "size": 6, "sha256": "a4d26868017c0ccffe2efe50944ef4211834660cca834c6e9f86dec6a88246fa", "artifact_id": null}, {"name": "state", "size": 42, "sha256": "24c9f20726d5555cac3e42740692669fe0202a82a304fe14d1192786f6b07a35", "artifact_id": null}], "created_at": "2026-11-30T06:01:46.979987Z"}',1796018506999983);
INSERT INTO "events" VALUES(22,'prj_01m8ngq2aeff5873dagdg1vz5v','snapshot','cartpole-dqn-76aec5eba545f136','run_01m8ngq2p4f38v31fb57tfnp37',NULL,'{"id": "snp_01m8ngq36web4rq1sra08dw255", "run_id": "run_01m8ngq2p4f38v31fb57tfnp37", "attempt_id": "att_01m8ngq32gfj8tb1251nwrmg2w", "state": "uploading", "reason": "periodic", "env_step": 40, "update": 0, "episode": 0, "fence": 1, "score": 12.5, "resume_exact": true, "best": false, "newest": false, "superseded": false, "size": 48, "files": [{"name": "memory", "size": 6, "sha256": "a4d26868017c0ccffe2efe50944ef4211834660cca834c6e9f86dec6a88246fa", "artifact_id": null}, {"name": "state", "size": 42, "sha256": "24c9f20726d5555cac3e42740692669fe0202a82a304fe14d1192786f6b07a35", "artifact_id": "art_01m8ngq382ehrv1t10cpy26055"}], "created_at": "2026-11-30T06:01:46.979987Z"}',1796018507063994);
INSERT INTO "events" VALUES(23,'prj_01m8ngq2aeff5873dagdg1vz5v','snapshot','cartpole-dqn-76aec5eba545f136','run_01m8ngq2p4f38v31fb57tfnp37',NULL,'{"id": "snp_01m8ngq36web4rq1sra08dw255", "run_id": "run_01m8ngq2p4f38v31fb57tfnp37", "attempt_id": "att_01m8ngq32gfj8tb1251nwrmg2w", "state": "verified", "reason": "periodic", "env_step": 40, "update": 0, "episode": 0, "fence": 1, "score": 12.5, "resume_exact": true, "best": true, "newest": true, "superseded": false, "size": 48, "files": [{"name": "memory", "size": 6, "sha256": "a4d26868017c0ccffe2efe50944ef4211834660cca834c6e9f86dec6a88246fa", "artifact_id": "art_01m8ngq3a7f9xvvhz7322nmnnj"}, {"name": "state", "size": 42, "sha256": "24c9f20726d5555cac3e42740692669fe0202a82a304fe14d1192786f6b07a35", "artifact_id": "art_01m8ngq382ehrv1t10cpy26055"}], "created_at": "2026-11-30T06:01:46.979987Z"}',1796018507130017);
INSERT INTO "events" VALUES(24,'prj_01m8ngq2aeff5873dagdg1vz5v','job','cartpole-dqn-76aec5eba545f136','run_01m8ngq2p4f38v31fb57tfnp37','job_01m8ngq2pqeq3bdw4x2z85yt1k','{"id": "job_01m8ngq2pqeq3bdw4x2z85yt1k", "experiment_id": "cartpole-dqn-76aec5eba545f136", "schedule": "train", "state": "pausing", "cause": "user", "failure": null, "pool": "default", "priority_class": "normal", "priority": 0, "resources": {"gpus": 0, "cpu_threads": 1, "memory_mib": null, "compile": "auto", "pack": "off", "evaluation": "inline"}, "limits": {"wall_seconds": null, "stall_seconds": 1800, "grace_seconds": 120, "max_attempts": 20}, "attempts": 1, "run_ids": ["run_01m8ngq2p4f38v31fb57tfnp37"], "started_at": "2026-11-30T06:01:46.829998Z", "finished_at": null}',1796018507172020);
INSERT INTO "events" VALUES(25,'prj_01m8ngq2aeff5873dagdg1vz5v','run','cartpole-dqn-76aec5eba545f136','run_01m8ngq2p4f38v31fb57tfnp37','job_01m8ngq2pqeq3bdw4x2z85yt1k','{"id": "run_01m8ngq2p4f38v31fb57tfnp37", "experiment_id": "cartpole-dqn-76aec5eba545f136", "seed": 0, "replicate": 0, "state": "running", "cause": "user", "failure": null, "fence": 1, "resume_quality": "fresh", "job_id": "job_01m8ngq2pqeq3bdw4x2z85yt1k", "started_at": "2026-11-30T06:01:46.829998Z", "finished_at": null}',1796018507172020);
INSERT INTO "events" VALUES(26,'prj_01m8ngq2aeff5873dagdg1vz5v','experiment','cartpole-dqn-76aec5eba545f136',NULL,NULL,'{"id": "cartpole-dqn-76aec5eba545f136"}',1796018507172020);
INSERT INTO "events" VALUES(27,'prj_01m8ngq2aeff5873dagdg1vz5v','job','cartpole-dqn-76aec5eba545f136','run_01m8ngq2p4f38v31fb57tfnp37','job_01m8ngq2pqeq3bdw4x2z85yt1k','{"id": "job_01m8ngq2pqeq3bdw4x2z85yt1k", "experiment_id": "cartpole-dqn-76aec5eba545f136", "schedule": "train", "state": "paused", "cause": "user", "failure": null, "pool": "default", "priority_class": "normal", "priority": 0, "resources": {"gpus": 0, "cpu_threads": 1, "memory_mib": null, "compile": "auto", "pack": "off", "evaluation": "inline"}, "limits": {"wall_seconds": null, "stall_seconds": 1800, "grace_seconds": 120, "max_attempts": 20}, "attempts": 1, "run_ids": ["run_01m8ngq2p4f38v31fb57tfnp37"], "started_at": "2026-11-30T06:01:46.829998Z", "finished_at": null, "not_uploaded": null}',1796018507236996);
INSERT INTO "events" VALUES(28,'prj_01m8ngq2aeff5873dagdg1vz5v','run','cartpole-dqn-76aec5eba545f136','run_01m8ngq2p4f38v31fb57tfnp37','job_01m8ngq2pqeq3bdw4x2z85yt1k','{"id": "run_01m8ngq2p4f38v31fb57tfnp37", "experiment_id": "cartpole-dqn-76aec5eba545f136", "seed": 0, "replicate": 0, "state": "paused", "cause": "user", "failure": null, "fence": 1, "resume_quality": "fresh", "job_id": "job_01m8ngq2pqeq3bdw4x2z85yt1k", "started_at": "2026-11-30T06:01:46.829998Z", "finished_at": null, "not_uploaded": null, "phase": null}',1796018507236996);
INSERT INTO "events" VALUES(29,'prj_01m8ngq2aeff5873dagdg1vz5v','experiment','cartpole-dqn-76aec5eba545f136',NULL,NULL,'{"id": "cartpole-dqn-76aec5eba545f136"}',1796018507236996);
INSERT INTO "events" VALUES(30,'prj_01m8ngq2aeff5873dagdg1vz5v','attempt','cartpole-dqn-76aec5eba545f136','run_01m8ngq2p4f38v31fb57tfnp37','job_01m8ngq2pqeq3bdw4x2z85yt1k','{"id": "att_01m8ngq32gfj8tb1251nwrmg2w", "job_id": "job_01m8ngq2pqeq3bdw4x2z85yt1k", "number": 1, "worker_id": "wrk_01m8ngq2ddfz2an1mbbxzmp1n7", "worker_name": "w1", "slot": 0, "slots": [0], "state": "ended", "outcome": "paused", "cause": "user", "failure": null, "fences": {"run_01m8ngq2p4f38v31fb57tfnp37": 1}, "resumed_from": {"run_01m8ngq2p4f38v31fb57tfnp37": null}, "resume_quality": "fresh", "other_code": null, "compile": null, "simulator": null, "started_at": "2026-11-30T06:01:46.839010Z", "ended_at": "2026-11-30T06:01:47.198011Z", "acked_seq": 6}',1796018507236996);
INSERT INTO "events" VALUES(31,'prj_01m8ngq2aeff5873dagdg1vz5v','job','cartpole-dqn-76aec5eba545f136','run_01m8ngq2p4fd78pkt2qmmdc3s6','job_01m8ngq2pqf0zrc2yqdfywcd6w','{"id": "job_01m8ngq2pqf0zrc2yqdfywcd6w", "experiment_id": "cartpole-dqn-76aec5eba545f136", "schedule": "train", "state": "starting", "cause": null, "failure": null, "pool": "default", "priority_class": "normal", "priority": 0, "resources": {"gpus": 0, "cpu_threads": 1, "memory_mib": null, "compile": "auto", "pack": "off", "evaluation": "inline"}, "limits": {"wall_seconds": null, "stall_seconds": 1800, "grace_seconds": 120, "max_attempts": 20}, "attempts": 1, "run_ids": ["run_01m8ngq2p4fd78pkt2qmmdc3s6"], "started_at": "2026-11-30T06:01:47.274011Z", "finished_at": null, "not_uploaded": null}',1796018507279000);
INSERT INTO "events" VALUES(32,'prj_01m8ngq2aeff5873dagdg1vz5v','run','cartpole-dqn-76aec5eba545f136','run_01m8ngq2p4fd78pkt2qmmdc3s6','job_01m8ngq2pqf0zrc2yqdfywcd6w','{"id": "run_01m8ngq2p4fd78pkt2qmmdc3s6", "experiment_id": "cartpole-dqn-76aec5eba545f136", "seed": 1, "replicate": 0, "state": "running", "cause": null, "failure": null, "fence": 1, "resume_quality": "fresh", "job_id": "job_01m8ngq2pqf0zrc2yqdfywcd6w", "started_at": "2026-11-30T06:01:47.274011Z", "finished_at": null, "not_uploaded": null, "phase": "starting"}',1796018507279000);
INSERT INTO "events" VALUES(33,'prj_01m8ngq2aeff5873dagdg1vz5v','experiment','cartpole-dqn-76aec5eba545f136',NULL,NULL,'{"id": "cartpole-dqn-76aec5eba545f136"}',1796018507279000);
INSERT INTO "events" VALUES(34,'prj_01m8ngq2aeff5873dagdg1vz5v','attempt','cartpole-dqn-76aec5eba545f136','run_01m8ngq2p4fd78pkt2qmmdc3s6','job_01m8ngq2pqf0zrc2yqdfywcd6w','{"id": "att_01m8ngq3gbem7tpav6x96kdyjt", "job_id": "job_01m8ngq2pqf0zrc2yqdfywcd6w", "number": 1, "worker_id": "wrk_01m8ngq2ddfz2an1mbbxzmp1n7", "worker_name": "w1", "slot": 1, "slots": [1], "state": "starting", "outcome": null, "cause": null, "failure": null, "fences": {"run_01m8ngq2p4fd78pkt2qmmdc3s6": 1}, "resumed_from": {"run_01m8ngq2p4fd78pkt2qmmdc3s6": null}, "resume_quality": null, "other_code": null, "compile": null, "simulator": null, "started_at": "2026-11-30T06:01:47.275982Z", "ended_at": null, "acked_seq": 0}',1796018507279000);
INSERT INTO "events" VALUES(35,'prj_01m8ngq2aeff5873dagdg1vz5v','job','cartpole-dqn-76aec5eba545f136','run_01m8ngq2p4fd78pkt2qmmdc3s6','job_01m8ngq2pqf0zrc2yqdfywcd6w','{"id": "job_01m8ngq2pqf0zrc2yqdfywcd6w", "experiment_id": "cartpole-dqn-76aec5eba545f136", "schedule": "train", "state": "running", "cause": null, "failure": null, "pool": "default", "priority_class": "normal", "priority": 0, "resources": {"gpus": 0, "cpu_threads": 1, "memory_mib": null, "compile": "auto", "pack": "off", "evaluation": "inline"}, "limits": {"wall_seconds": null, "stall_seconds": 1800, "grace_seconds": 120, "max_attempts": 20}, "attempts": 1, "run_ids": ["run_01m8ngq2p4fd78pkt2qmmdc3s6"], "started_at": "2026-11-30T06:01:47.274011Z", "finished_at": null}',1796018507296984);
INSERT INTO "events" VALUES(36,'prj_01m8ngq2aeff5873dagdg1vz5v','run','cartpole-dqn-76aec5eba545f136','run_01m8ngq2p4fd78pkt2qmmdc3s6','job_01m8ngq2pqf0zrc2yqdfywcd6w','{"id": "run_01m8ngq2p4fd78pkt2qmmdc3s6", "experiment_id": "cartpole-dqn-76aec5eba545f136", "seed": 1, "replicate": 0, "state": "running", "cause": null, "failure": null, "fence": 1, "resume_quality": "fresh", "job_id": "job_01m8ngq2pqf0zrc2yqdfywcd6w", "started_at": "2026-11-30T06:01:47.274011Z", "finished_at": null}',1796018507296984);
INSERT INTO "events" VALUES(37,'prj_01m8ngq2aeff5873dagdg1vz5v','experiment','cartpole-dqn-76aec5eba545f136',NULL,NULL,'{"id": "cartpole-dqn-76aec5eba545f136"}',1796018507296984);
INSERT INTO "events" VALUES(38,'prj_01m8ngq2aeff5873dagdg1vz5v','job','cartpole-dqn-76aec5eba545f136','run_01m8ngq2p4fd78pkt2qmmdc3s6','job_01m8ngq2pqf0zrc2yqdfywcd6w','{"id": "job_01m8ngq2pqf0zrc2yqdfywcd6w", "experiment_id": "cartpole-dqn-76aec5eba545f136", "schedule": "train", "state": "running", "cause": null, "failure": null, "pool": "default", "priority_class": "normal", "priority": 0, "resources": {"gpus": 0, "cpu_threads": 1, "memory_mib": null, "compile": "auto", "pack": "off", "evaluation": "inline"}, "limits": {"wall_seconds": null, "stall_seconds": 1800, "grace_seconds": 120, "max_attempts": 20}, "attempts": 1, "run_ids": ["run_01m8ngq2p4fd78pkt2qmmdc3s6"], "started_at": "2026-11-30T06:01:47.274011Z", "finished_at": null, "not_uploaded": null}',1796018507296984);
INSERT INTO "events" VALUES(39,'prj_01m8ngq2aeff5873dagdg1vz5v','run','cartpole-dqn-76aec5eba545f136','run_01m8ngq2p4fd78pkt2qmmdc3s6','job_01m8ngq2pqf0zrc2yqdfywcd6w','{"id": "run_01m8ngq2p4fd78pkt2qmmdc3s6", "experiment_id": "cartpole-dqn-76aec5eba545f136", "seed": 1, "replicate": 0, "state": "running", "cause": null, "failure": null, "fence": 1, "resume_quality": "fresh", "job_id": "job_01m8ngq2pqf0zrc2yqdfywcd6w", "started_at": "2026-11-30T06:01:47.274011Z", "finished_at": null, "not_uploaded": null, "phase": null}',1796018507296984);
INSERT INTO "events" VALUES(40,'prj_01m8ngq2aeff5873dagdg1vz5v','experiment','cartpole-dqn-76aec5eba545f136',NULL,NULL,'{"id": "cartpole-dqn-76aec5eba545f136"}',1796018507296984);
INSERT INTO "events" VALUES(41,'prj_01m8ngq2aeff5873dagdg1vz5v','job','cartpole-dqn-76aec5eba545f136','run_01m8ngq2p4fd78pkt2qmmdc3s6','job_01m8ngq2pqf0zrc2yqdfywcd6w','{"id": "job_01m8ngq2pqf0zrc2yqdfywcd6w", "experiment_id": "cartpole-dqn-76aec5eba545f136", "schedule": "train", "state": "succeeded", "cause": "budget", "failure": null, "pool": "default", "priority_class": "normal", "priority": 0, "resources": {"gpus": 0, "cpu_threads": 1, "memory_mib": null, "compile": "auto", "pack": "off", "evaluation": "inline"}, "limits": {"wall_seconds": null, "stall_seconds": 1800, "grace_seconds": 120, "max_attempts": 20}, "attempts": 1, "run_ids": ["run_01m8ngq2p4fd78pkt2qmmdc3s6"], "started_at": "2026-11-30T06:01:47.274011Z", "finished_at": "2026-11-30T06:01:47.315008Z", "not_uploaded": null}',1796018507321003);
INSERT INTO "events" VALUES(42,'prj_01m8ngq2aeff5873dagdg1vz5v','run','cartpole-dqn-76aec5eba545f136','run_01m8ngq2p4fd78pkt2qmmdc3s6','job_01m8ngq2pqf0zrc2yqdfywcd6w','{"id": "run_01m8ngq2p4fd78pkt2qmmdc3s6", "experiment_id": "cartpole-dqn-76aec5eba545f136", "seed": 1, "replicate": 0, "state": "succeeded", "cause": "budget", "failure": null, "fence": 1, "resume_quality": "fresh", "job_id": "job_01m8ngq2pqf0zrc2yqdfywcd6w", "started_at": "2026-11-30T06:01:47.274011Z", "finished_at": "2026-11-30T06:01:47.315008Z", "not_uploaded": null, "phase": null}',1796018507321003);
INSERT INTO "events" VALUES(43,'prj_01m8ngq2aeff5873dagdg1vz5v','experiment','cartpole-dqn-76aec5eba545f136',NULL,NULL,'{"id": "cartpole-dqn-76aec5eba545f136"}',1796018507321003);
INSERT INTO "events" VALUES(44,'prj_01m8ngq2aeff5873dagdg1vz5v','attempt','cartpole-dqn-76aec5eba545f136','run_01m8ngq2p4fd78pkt2qmmdc3s6','job_01m8ngq2pqf0zrc2yqdfywcd6w','{"id": "att_01m8ngq3gbem7tpav6x96kdyjt", "job_id": "job_01m8ngq2pqf0zrc2yqdfywcd6w", "number": 1, "worker_id": "wrk_01m8ngq2ddfz2an1mbbxzmp1n7", "worker_name": "w1", "slot": 1, "slots": [1], "state": "ended", "outcome": "succeeded", "cause": "budget", "failure": null, "fences": {"run_01m8ngq2p4fd78pkt2qmmdc3s6": 1}, "resumed_from": {"run_01m8ngq2p4fd78pkt2qmmdc3s6": null}, "resume_quality": "fresh", "other_code": null, "compile": null, "simulator": null, "started_at": "2026-11-30T06:01:47.275982Z", "ended_at": "2026-11-30T06:01:47.307002Z", "acked_seq": 0}',1796018507321003);
CREATE TABLE experiments (
	project_id VARCHAR(64) NOT NULL, 
	id VARCHAR(64) NOT NULL, 
	identity_hash VARCHAR(64) NOT NULL, 
	definition_hash VARCHAR(64) NOT NULL, 
	schema_version INTEGER NOT NULL, 
	definition TEXT NOT NULL, 
	code JSON NOT NULL, 
	name VARCHAR(64) NOT NULL, 
	notes TEXT NOT NULL, 
	kind VARCHAR(32) NOT NULL, 
	agent VARCHAR(64) NOT NULL, 
	env VARCHAR(128) NOT NULL, 
	created_by VARCHAR(64) NOT NULL, 
	created_at BIGINT NOT NULL, 
	archived_at BIGINT, max_running INTEGER, 
	CONSTRAINT pk_experiments PRIMARY KEY (project_id, id), 
	CONSTRAINT fk_experiments_created_by FOREIGN KEY(created_by) REFERENCES users (id), 
	CONSTRAINT fk_experiments_project_id FOREIGN KEY(project_id) REFERENCES projects (id) ON DELETE CASCADE, 
	CONSTRAINT uq_experiments_project_id_identity_hash UNIQUE (project_id, identity_hash)
);
INSERT INTO "experiments" VALUES('prj_01m8ngq2aeff5873dagdg1vz5v','cartpole-dqn-76aec5eba545f136','76aec5eba545f136f162eb7074043e135288e8ba5035b96740d5c08c33c9ac03','81ea55ba749bb0eeda10c0a7ba3cef4b997b59441e99eb5263cf69b1307c80d8',2,'{"agent":{"activation":"relu","adam_epsilon":1e-08,"batch_size":64,"buffer_size":100000,"double":true,"dueling":false,"epsilon_decay_steps":10000,"epsilon_end":0.05,"epsilon_start":1.0,"gamma":0.99,"hidden_sizes":[64,64],"learning_rate":0.001,"learning_starts":1000,"loss":"huber","max_grad_norm":10.0,"n_step":1,"name":"dqn","noisy":false,"prioritized":null,"target_update_every":500,"train_every":1,"updates_per_train":1},"env":{"id":"CartPole-v1","kwargs":{},"max_episode_steps":null,"num_envs":1,"vectorization":"sync"},"evaluation":{"during_episode":true,"episodes":10,"every_env_steps":5000,"max_episode_steps":null,"steps":null},"export":{"formats":[]},"hooks":[{"name":"nan_guard","updates":100}],"kind":"rl","loop":{"env_steps":10000,"episodes":null,"epoch_env_steps":1000,"updates":null},"name":"CartPole DQN","notes":"","schema_version":2,"snapshot":{"every_env_steps":10000,"keep_best":true,"keep_last":2,"memory":"full"},"stop":{"success_evaluations":1,"success_score":null}}','{"kind": "builtin"}','CartPole DQN','','rl','dqn','CartPole-v1','usr_01m8ngq2aeejab104zgtkez2fz',1796018506419017,NULL,NULL);
CREATE TABLE "idempotency_keys" (
	user_id VARCHAR(64) NOT NULL, 
	"key" VARCHAR(255) NOT NULL, 
	request_hash VARCHAR(64) NOT NULL, 
	status INTEGER NOT NULL, 
	location VARCHAR(512), 
	body BLOB NOT NULL, 
	created_at BIGINT NOT NULL, 
	CONSTRAINT pk_idempotency_keys PRIMARY KEY (user_id, "key")
);
CREATE TABLE invitations (
	id VARCHAR(64) NOT NULL, 
	code_hash VARCHAR(64) NOT NULL, 
	name VARCHAR(64), 
	display_name VARCHAR(64) DEFAULT '' NOT NULL, 
	email VARCHAR(254), 
	is_admin BOOLEAN DEFAULT 0 NOT NULL, 
	memberships JSON NOT NULL, 
	created_by VARCHAR(64) NOT NULL, 
	created_at BIGINT NOT NULL, 
	expires_at BIGINT NOT NULL, 
	redeemed_at BIGINT, 
	redeemed_by VARCHAR(64), 
	revoked_at BIGINT, 
	CONSTRAINT pk_invitations PRIMARY KEY (id), 
	CONSTRAINT uq_invitations_code_hash UNIQUE (code_hash)
);
CREATE TABLE job_dependencies (
	job_id VARCHAR(64) NOT NULL, 
	after_id VARCHAR(64) NOT NULL, 
	condition VARCHAR(16) NOT NULL, 
	is_open BOOLEAN NOT NULL, 
	CONSTRAINT pk_job_dependencies PRIMARY KEY (job_id, after_id), 
	CONSTRAINT fk_job_dependencies_job_id_jobs FOREIGN KEY(job_id) REFERENCES jobs (id) ON DELETE CASCADE, 
	CONSTRAINT fk_job_dependencies_after_id_jobs FOREIGN KEY(after_id) REFERENCES jobs (id) ON DELETE CASCADE
);
CREATE TABLE job_runs (
	job_id VARCHAR(64) NOT NULL, 
	run_id VARCHAR(64) NOT NULL, 
	position INTEGER NOT NULL, outcome VARCHAR(16), cause VARCHAR(32), failure JSON, ended_at BIGINT, 
	CONSTRAINT pk_job_runs PRIMARY KEY (job_id, run_id), 
	CONSTRAINT fk_job_runs_job_id FOREIGN KEY(job_id) REFERENCES jobs (id) ON DELETE CASCADE, 
	CONSTRAINT fk_job_runs_run_id FOREIGN KEY(run_id) REFERENCES runs (id) ON DELETE CASCADE
);
INSERT INTO "job_runs" VALUES('job_01m8ngq2pqeq3bdw4x2z85yt1k','run_01m8ngq2p4f38v31fb57tfnp37',0,NULL,NULL,NULL,NULL);
INSERT INTO "job_runs" VALUES('job_01m8ngq2pqf0zrc2yqdfywcd6w','run_01m8ngq2p4fd78pkt2qmmdc3s6',0,NULL,NULL,NULL,NULL);
CREATE TABLE jobs (
	id VARCHAR(64) NOT NULL, 
	project_id VARCHAR(64) NOT NULL, 
	experiment_id VARCHAR(64) NOT NULL, 
	schedule VARCHAR(32) NOT NULL, 
	state VARCHAR(16) NOT NULL, 
	cause VARCHAR(32), 
	failure JSON, 
	pool VARCHAR(64) NOT NULL, 
	priority INTEGER NOT NULL, 
	gpus INTEGER NOT NULL, 
	resources JSON NOT NULL, 
	limits JSON NOT NULL, 
	evaluate JSON, 
	work_order_version INTEGER NOT NULL, 
	attempt INTEGER NOT NULL, 
	infrastructure_failures INTEGER NOT NULL, 
	counted_failures INTEGER NOT NULL, 
	quick_deaths INTEGER NOT NULL, 
	not_before BIGINT, 
	created_by VARCHAR(64) NOT NULL, 
	created_at BIGINT NOT NULL, 
	queued_at BIGINT NOT NULL, 
	started_at BIGINT, 
	finished_at BIGINT, afresh BOOLEAN DEFAULT 0 NOT NULL, allow_code_change BOOLEAN DEFAULT 0 NOT NULL, priority_class VARCHAR(16) DEFAULT 'normal' NOT NULL, seed_index INTEGER DEFAULT '0' NOT NULL, assigned_worker_id VARCHAR(64), assigned_until BIGINT, charged_weight FLOAT, own_place BIGINT DEFAULT '0' NOT NULL, open_dependencies INTEGER DEFAULT '0' NOT NULL, assigned_slots INTEGER DEFAULT '1' NOT NULL, failed_starts INTEGER DEFAULT '0' NOT NULL, 
	CONSTRAINT pk_jobs PRIMARY KEY (id), 
	CONSTRAINT fk_jobs_created_by FOREIGN KEY(created_by) REFERENCES users (id), 
	CONSTRAINT fk_jobs_project_id_experiment_id FOREIGN KEY(project_id, experiment_id) REFERENCES experiments (project_id, id) ON DELETE CASCADE
);
INSERT INTO "jobs" VALUES('job_01m8ngq2pqeq3bdw4x2z85yt1k','prj_01m8ngq2aeff5873dagdg1vz5v','cartpole-dqn-76aec5eba545f136','train','paused','user',NULL,'default',0,0,'{"gpus": 0, "cpu_threads": 1, "memory_mib": null, "compile": "auto", "pack": "off", "evaluation": "inline"}','{"wall_seconds": null, "stall_seconds": 1800, "grace_seconds": 120, "max_attempts": 20}',NULL,2,1,0,0,0,NULL,'usr_01m8ngq2aeejab104zgtkez2fz',1796018506466009,1796018506466009,1796018506829998,NULL,0,0,'normal',0,NULL,NULL,NULL,0,0,1,0);
INSERT INTO "jobs" VALUES('job_01m8ngq2pqf0zrc2yqdfywcd6w','prj_01m8ngq2aeff5873dagdg1vz5v','cartpole-dqn-76aec5eba545f136','train','succeeded','budget',NULL,'default',0,0,'{"gpus": 0, "cpu_threads": 1, "memory_mib": null, "compile": "auto", "pack": "off", "evaluation": "inline"}','{"wall_seconds": null, "stall_seconds": 1800, "grace_seconds": 120, "max_attempts": 20}',NULL,2,1,0,0,0,NULL,'usr_01m8ngq2aeejab104zgtkez2fz',1796018506466009,1796018506466009,1796018507274011,1796018507315008,0,0,'normal',1,NULL,NULL,NULL,0,0,1,0);
CREATE TABLE log_blocks (
	id INTEGER NOT NULL, 
	run_id VARCHAR(64) NOT NULL, 
	attempt_id VARCHAR(64) NOT NULL, 
	first_line BIGINT NOT NULL, 
	last_line BIGINT NOT NULL, 
	total_bytes BIGINT NOT NULL, 
	content BLOB NOT NULL, 
	CONSTRAINT pk_log_blocks PRIMARY KEY (id), 
	CONSTRAINT fk_log_blocks_attempt_id FOREIGN KEY(attempt_id) REFERENCES attempts (id) ON DELETE CASCADE, 
	CONSTRAINT fk_log_blocks_run_id FOREIGN KEY(run_id) REFERENCES runs (id) ON DELETE CASCADE, 
	CONSTRAINT uq_log_blocks_run_id_first_line UNIQUE (run_id, first_line)
);
INSERT INTO "log_blocks" VALUES(1,'run_01m8ngq2p4f38v31fb57tfnp37','att_01m8ngq32gfj8tb1251nwrmg2w',1,1,6,X'78018B8E562A2E49C92F2D51D231D433D051CA48CDC9C9578A8D0500605C0797');
CREATE TABLE "login_links" (
	code_hash VARCHAR(64) NOT NULL, 
	user_id VARCHAR(64) NOT NULL, 
	created_at BIGINT NOT NULL, 
	expires_at BIGINT NOT NULL, 
	used_at BIGINT, 
	CONSTRAINT pk_login_links PRIMARY KEY (code_hash), 
	CONSTRAINT fk_login_links_user_id FOREIGN KEY(user_id) REFERENCES users (id) ON DELETE CASCADE
);
CREATE TABLE "login_sessions" (
	id VARCHAR(64) NOT NULL, 
	user_id VARCHAR(64) NOT NULL, 
	secret_hash VARCHAR(64) NOT NULL, 
	created_at BIGINT NOT NULL, 
	last_used_at BIGINT NOT NULL, 
	ended_at BIGINT, last_used_address VARCHAR(64), browser VARCHAR(64), opened_by VARCHAR(16), 
	CONSTRAINT pk_login_sessions PRIMARY KEY (id), 
	CONSTRAINT uq_login_sessions_secret_hash UNIQUE (secret_hash), 
	CONSTRAINT fk_login_sessions_user_id FOREIGN KEY(user_id) REFERENCES users (id) ON DELETE CASCADE
);
CREATE TABLE memberships (
	project_id VARCHAR(64) NOT NULL, 
	user_id VARCHAR(64) NOT NULL, 
	role VARCHAR(16) NOT NULL, 
	created_at BIGINT NOT NULL, 
	CONSTRAINT pk_memberships PRIMARY KEY (project_id, user_id), 
	CONSTRAINT fk_memberships_project_id FOREIGN KEY(project_id) REFERENCES projects (id) ON DELETE CASCADE, 
	CONSTRAINT fk_memberships_user_id FOREIGN KEY(user_id) REFERENCES users (id) ON DELETE CASCADE
);
INSERT INTO "memberships" VALUES('prj_01m8ngq2aeff5873dagdg1vz5v','usr_01m8ngq2aeejab104zgtkez2fz','maintainer',1796018506115015);
INSERT INTO "memberships" VALUES('prj_01m8ngq2aeff5873dagdg1vz5v','usr_01m8ngq2aefa5rvxxk2mwg1843','maintainer',1796018506115015);
CREATE TABLE open_log_lines (
	run_id VARCHAR(64) NOT NULL, 
	attempt_id VARCHAR(64) NOT NULL, 
	stream VARCHAR(16) NOT NULL, 
	content BLOB NOT NULL, 
	CONSTRAINT pk_open_log_lines PRIMARY KEY (run_id, attempt_id, stream), 
	CONSTRAINT fk_open_log_lines_run_id FOREIGN KEY(run_id) REFERENCES runs (id) ON DELETE CASCADE, 
	CONSTRAINT fk_open_log_lines_attempt_id FOREIGN KEY(attempt_id) REFERENCES attempts (id) ON DELETE CASCADE
);
CREATE TABLE pool_hours (
	pool VARCHAR(64) NOT NULL, 
	hour BIGINT NOT NULL, 
	sampled_at BIGINT, 
	recorded_seconds FLOAT DEFAULT '0' NOT NULL, 
	slot_seconds FLOAT DEFAULT '0' NOT NULL, 
	busy_seconds FLOAT DEFAULT '0' NOT NULL, 
	idle_waiting_seconds FLOAT DEFAULT '0' NOT NULL, 
	CONSTRAINT pk_pool_hours PRIMARY KEY (pool, hour)
);
CREATE TABLE pool_windows (
	id VARCHAR(64) NOT NULL, 
	pool_id VARCHAR(64) NOT NULL, 
	kind VARCHAR(16) NOT NULL, 
	starts_at BIGINT NOT NULL, 
	ends_at BIGINT NOT NULL, 
	workers JSON NOT NULL, 
	project_id VARCHAR(64), 
	user_id VARCHAR(64), 
	reason TEXT DEFAULT '' NOT NULL, 
	created_by VARCHAR(64) NOT NULL, 
	created_at BIGINT NOT NULL, 
	CONSTRAINT pk_pool_windows PRIMARY KEY (id), 
	CONSTRAINT fk_pool_windows_pool_id FOREIGN KEY(pool_id) REFERENCES pools (id) ON DELETE CASCADE, 
	CONSTRAINT fk_pool_windows_project_id FOREIGN KEY(project_id) REFERENCES projects (id) ON DELETE CASCADE, 
	CONSTRAINT fk_pool_windows_user_id FOREIGN KEY(user_id) REFERENCES users (id) ON DELETE CASCADE
);
CREATE TABLE pools (
	id VARCHAR(64) NOT NULL, 
	name VARCHAR(64) NOT NULL, 
	description TEXT DEFAULT '' NOT NULL, 
	paused_at BIGINT, 
	pause_reason TEXT DEFAULT '' NOT NULL, 
	default_wall_seconds INTEGER, 
	max_wall_seconds INTEGER, 
	shows_names BOOLEAN DEFAULT 0 NOT NULL, 
	created_at BIGINT NOT NULL, 
	CONSTRAINT pk_pools PRIMARY KEY (id), 
	CONSTRAINT uq_pools_name UNIQUE (name)
);
INSERT INTO "pools" VALUES('pol_01m8ngq2cae5hajetms6224d94','default','',NULL,'',NULL,NULL,0,1796018506127004);
CREATE TABLE project_pools (
	project_id VARCHAR(64) NOT NULL, 
	pool_id VARCHAR(64) NOT NULL, 
	share FLOAT DEFAULT '1' NOT NULL, 
	created_at BIGINT NOT NULL, 
	CONSTRAINT pk_project_pools PRIMARY KEY (project_id, pool_id), 
	CONSTRAINT fk_project_pools_project_id FOREIGN KEY(project_id) REFERENCES projects (id) ON DELETE CASCADE, 
	CONSTRAINT fk_project_pools_pool_id FOREIGN KEY(pool_id) REFERENCES pools (id) ON DELETE CASCADE
);
INSERT INTO "project_pools" VALUES('prj_01m8ngq2aeff5873dagdg1vz5v','pol_01m8ngq2cae5hajetms6224d94',1.0,1796018506140000);
CREATE TABLE "projects" (
	id VARCHAR(64) NOT NULL, 
	name VARCHAR(64) NOT NULL, 
	created_at BIGINT NOT NULL, 
	slug VARCHAR(64) NOT NULL, 
	description TEXT DEFAULT ('') NOT NULL, 
	archived_at BIGINT, 
	deleted_at BIGINT, 
	storage_limit BIGINT, deleted_by VARCHAR(64), restorable_until BIGINT, removal_started_at BIGINT, storage_used BIGINT DEFAULT '0' NOT NULL, 
	CONSTRAINT pk_projects PRIMARY KEY (id), 
	CONSTRAINT uq_projects_name UNIQUE (name), 
	CONSTRAINT uq_projects_slug UNIQUE (slug)
);
INSERT INTO "projects" VALUES('prj_01m8ngq2aeff5873dagdg1vz5v','default',1796018506078000,'default','',NULL,NULL,NULL,NULL,NULL,NULL,48);
CREATE TABLE queue_groups (
	pool VARCHAR(64) NOT NULL, 
	priority_class VARCHAR(16) NOT NULL, 
	project_id VARCHAR(64) NOT NULL, 
	user_id VARCHAR(64) NOT NULL, 
	waiting_since BIGINT NOT NULL, 
	queued_at BIGINT NOT NULL, 
	CONSTRAINT pk_queue_groups PRIMARY KEY (pool, priority_class, project_id, user_id)
);
INSERT INTO "queue_groups" VALUES('default','normal','prj_01m8ngq2aeff5873dagdg1vz5v','usr_01m8ngq2aeejab104zgtkez2fz',1796018506481981,1796018506481981);
CREATE TABLE quotas (
	pool_id VARCHAR(64) NOT NULL, 
	project_id VARCHAR(64) NOT NULL, 
	subject VARCHAR(64) NOT NULL, 
	queued INTEGER, 
	running INTEGER, 
	device_hours FLOAT, 
	CONSTRAINT pk_quotas PRIMARY KEY (pool_id, project_id, subject), 
	CONSTRAINT fk_quotas_pool_id_pools FOREIGN KEY(pool_id) REFERENCES pools (id) ON DELETE CASCADE, 
	CONSTRAINT fk_quotas_project_id_projects FOREIGN KEY(project_id) REFERENCES projects (id) ON DELETE CASCADE
);
CREATE TABLE run_findings (
	run_id VARCHAR(64) NOT NULL, 
	rule VARCHAR(64) NOT NULL, 
	place SMALLINT NOT NULL, 
	sentence TEXT NOT NULL, 
	remedy TEXT NOT NULL, 
	series VARCHAR(160) NOT NULL, 
	env_step BIGINT NOT NULL, 
	CONSTRAINT pk_run_findings PRIMARY KEY (run_id, rule), 
	CONSTRAINT fk_run_findings_run_id FOREIGN KEY(run_id) REFERENCES runs (id) ON DELETE CASCADE
);
CREATE TABLE run_summaries (
	run_id VARCHAR(64) NOT NULL, 
	fence BIGINT NOT NULL, 
	version BIGINT NOT NULL, 
	places JSON NOT NULL, 
	first_wall FLOAT, judged_version BIGINT DEFAULT '-1' NOT NULL, 
	CONSTRAINT pk_run_summaries PRIMARY KEY (run_id), 
	CONSTRAINT fk_run_summaries_run_id FOREIGN KEY(run_id) REFERENCES runs (id) ON DELETE CASCADE
);
CREATE TABLE runs (
	id VARCHAR(64) NOT NULL, 
	project_id VARCHAR(64) NOT NULL, 
	experiment_id VARCHAR(64) NOT NULL, 
	seed BIGINT NOT NULL, 
	replicate INTEGER NOT NULL, 
	submission_id BIGINT NOT NULL, 
	fence BIGINT NOT NULL, 
	state VARCHAR(16) NOT NULL, 
	cause VARCHAR(32), 
	failure JSON, 
	job_id VARCHAR(64), 
	resume_quality VARCHAR(16), 
	env_step BIGINT NOT NULL, 
	update_count BIGINT NOT NULL, 
	episode BIGINT NOT NULL, 
	env_steps_per_second FLOAT, 
	created_by VARCHAR(64) NOT NULL, 
	created_at BIGINT NOT NULL, 
	started_at BIGINT, 
	finished_at BIGINT, 
	CONSTRAINT pk_runs PRIMARY KEY (id), 
	CONSTRAINT fk_runs_created_by FOREIGN KEY(created_by) REFERENCES users (id), 
	CONSTRAINT fk_runs_project_id_experiment_id FOREIGN KEY(project_id, experiment_id) REFERENCES experiments (project_id, id) ON DELETE CASCADE, 
	CONSTRAINT fk_runs_submission_id FOREIGN KEY(submission_id) REFERENCES submissions (id), 
	CONSTRAINT uq_runs_project_id_experiment_id_seed_replicate UNIQUE (project_id, experiment_id, seed, replicate)
);
INSERT INTO "runs" VALUES('run_01m8ngq2p4f38v31fb57tfnp37','prj_01m8ngq2aeff5873dagdg1vz5v','cartpole-dqn-76aec5eba545f136',0,0,1,1,'paused','user',NULL,'job_01m8ngq2pqeq3bdw4x2z85yt1k','fresh',49,3,3,NULL,'usr_01m8ngq2aeejab104zgtkez2fz',1796018506434989,1796018506829998,NULL);
INSERT INTO "runs" VALUES('run_01m8ngq2p4fd78pkt2qmmdc3s6','prj_01m8ngq2aeff5873dagdg1vz5v','cartpole-dqn-76aec5eba545f136',1,0,1,1,'succeeded','budget',NULL,'job_01m8ngq2pqf0zrc2yqdfywcd6w','fresh',0,0,0,NULL,'usr_01m8ngq2aeejab104zgtkez2fz',1796018506434989,1796018507274011,1796018507315008);
CREATE TABLE series (
	id INTEGER NOT NULL, 
	run_id VARCHAR(64) NOT NULL, 
	name VARCHAR(128) NOT NULL, 
	points BIGINT NOT NULL, 
	nonfinite BIGINT NOT NULL, 
	last_env_step BIGINT NOT NULL, 
	last_value VARCHAR(32) NOT NULL, 
	CONSTRAINT pk_series PRIMARY KEY (id), 
	CONSTRAINT fk_series_run_id FOREIGN KEY(run_id) REFERENCES runs (id) ON DELETE CASCADE, 
	CONSTRAINT uq_series_run_id_name UNIQUE (run_id, name)
);
INSERT INTO "series" VALUES(1,'run_01m8ngq2p4f38v31fb57tfnp37','loss/td',49,0,49,'49.0');
INSERT INTO "series" VALUES(2,'run_01m8ngq2p4f38v31fb57tfnp37','episode/return',3,0,30,'3.0');
INSERT INTO "series" VALUES(3,'run_01m8ngq2p4f38v31fb57tfnp37','episode/length',3,0,30,'10.0');
CREATE TABLE series_names (
	id INTEGER NOT NULL, 
	name VARCHAR(160) NOT NULL, 
	CONSTRAINT pk_series_names PRIMARY KEY (id), 
	CONSTRAINT uq_series_names_name UNIQUE (name)
);
CREATE TABLE series_summaries (
	run_id VARCHAR(64) NOT NULL, 
	name_id BIGINT NOT NULL, 
	setup_id BIGINT NOT NULL, 
	points BIGINT NOT NULL, 
	nonfinite BIGINT NOT NULL, 
	last FLOAT, 
	best FLOAT, 
	best_env_step BIGINT, 
	mean10 FLOAT, 
	recent TEXT NOT NULL, 
	CONSTRAINT pk_series_summaries PRIMARY KEY (run_id, name_id), 
	CONSTRAINT fk_series_summaries_run_id FOREIGN KEY(run_id) REFERENCES runs (id) ON DELETE CASCADE
);
CREATE TABLE server_uptime (
	id INTEGER NOT NULL, 
	seconds FLOAT NOT NULL, 
	counted_at BIGINT NOT NULL, 
	CONSTRAINT pk_server_uptime PRIMARY KEY (id)
);
CREATE TABLE setups (
	id INTEGER NOT NULL, 
	project_id VARCHAR(64) NOT NULL, 
	agent VARCHAR(64) NOT NULL, 
	env VARCHAR(128) NOT NULL, 
	CONSTRAINT pk_setups PRIMARY KEY (id), 
	CONSTRAINT fk_setups_project_id FOREIGN KEY(project_id) REFERENCES projects (id) ON DELETE CASCADE, 
	CONSTRAINT uq_setups_project_id_agent_env UNIQUE (project_id, agent, env)
);
CREATE TABLE snapshot_files (
	snapshot_id VARCHAR(64) NOT NULL, 
	name VARCHAR(128) NOT NULL, 
	size BIGINT NOT NULL, 
	sha256 VARCHAR(64) NOT NULL, 
	artifact_id VARCHAR(64), 
	CONSTRAINT pk_snapshot_files PRIMARY KEY (snapshot_id, name), 
	CONSTRAINT fk_snapshot_files_snapshot_id FOREIGN KEY(snapshot_id) REFERENCES snapshots (id) ON DELETE CASCADE
);
INSERT INTO "snapshot_files" VALUES('snp_01m8ngq36web4rq1sra08dw255','state',42,'24c9f20726d5555cac3e42740692669fe0202a82a304fe14d1192786f6b07a35','art_01m8ngq382ehrv1t10cpy26055');
INSERT INTO "snapshot_files" VALUES('snp_01m8ngq36web4rq1sra08dw255','memory',6,'a4d26868017c0ccffe2efe50944ef4211834660cca834c6e9f86dec6a88246fa','art_01m8ngq3a7f9xvvhz7322nmnnj');
CREATE TABLE snapshots (
	id VARCHAR(64) NOT NULL, 
	project_id VARCHAR(64) NOT NULL, 
	experiment_id VARCHAR(64) NOT NULL, 
	run_id VARCHAR(64) NOT NULL, 
	attempt_id VARCHAR(64) NOT NULL, 
	fence BIGINT NOT NULL, 
	seq BIGINT NOT NULL, 
	state VARCHAR(16) NOT NULL, 
	reason VARCHAR(16) NOT NULL, 
	env_step BIGINT NOT NULL, 
	update_count BIGINT NOT NULL, 
	episode BIGINT NOT NULL, 
	format_version INTEGER NOT NULL, 
	resume_exact BOOLEAN NOT NULL, 
	score FLOAT, 
	score_text VARCHAR(32), 
	superseded BOOLEAN NOT NULL, 
	pinned BOOLEAN NOT NULL, 
	size BIGINT NOT NULL, 
	created_at BIGINT NOT NULL, 
	verified_at BIGINT, 
	CONSTRAINT pk_snapshots PRIMARY KEY (id), 
	CONSTRAINT fk_snapshots_attempt_id FOREIGN KEY(attempt_id) REFERENCES attempts (id) ON DELETE CASCADE, 
	CONSTRAINT fk_snapshots_run_id FOREIGN KEY(run_id) REFERENCES runs (id) ON DELETE CASCADE
);
INSERT INTO "snapshots" VALUES('snp_01m8ngq36web4rq1sra08dw255','prj_01m8ngq2aeff5873dagdg1vz5v','cartpole-dqn-76aec5eba545f136','run_01m8ngq2p4f38v31fb57tfnp37','att_01m8ngq32gfj8tb1251nwrmg2w',1,6,'verified','periodic',40,0,0,1,1,12.5,'12.5',0,0,48,1796018506979987,1796018507114004);
ANALYZE "sqlite_master";
INSERT INTO "sqlite_stat1" VALUES('runs','sqlite_autoindex_runs_1','100000 1');
INSERT INTO "sqlite_stat1" VALUES('runs','sqlite_autoindex_runs_2','100000 50000 10 1 1');
INSERT INTO "sqlite_stat1" VALUES('runs','ix_runs_project_id_created_at_id','100000 50000 10 1');
INSERT INTO "sqlite_stat1" VALUES('runs','ix_runs_created_by_created_at_id','100000 10000 10 1');
INSERT INTO "sqlite_stat1" VALUES('runs','ix_runs_submission_id','100000 10');
INSERT INTO "sqlite_stat1" VALUES('runs','ix_runs_filters','100000 50000 20000 10 1 1 1 1');
INSERT INTO "sqlite_stat1" VALUES('definition_members','definition_members','200000 100000 20 1');
INSERT INTO "sqlite_stat1" VALUES('definition_members','ix_definition_members_path_text','200000 10000 100');
INSERT INTO "sqlite_stat1" VALUES('definition_members','ix_definition_members_path_number','200000 10000 100');
INSERT INTO "sqlite_stat1" VALUES('series_summaries','sqlite_autoindex_series_summaries_1','2000000 20 1');
INSERT INTO "sqlite_stat1" VALUES('series_summaries','ix_series_summaries_best','2000000 100000 2000 1 1');
INSERT INTO "sqlite_stat1" VALUES('series_summaries','ix_series_summaries_last','2000000 100000 2000 1 1');
INSERT INTO "sqlite_stat1" VALUES('series_summaries','ix_series_summaries_mean10','2000000 100000 2000 1 1');
CREATE TABLE start_estimates (
	job_id VARCHAR(64) NOT NULL, 
	pool VARCHAR(64) NOT NULL, 
	made_at BIGINT NOT NULL, 
	earliest BIGINT, 
	median BIGINT, 
	latest BIGINT, 
	unknown TEXT, 
	first_made_at BIGINT, 
	first_earliest BIGINT, 
	first_median BIGINT, 
	first_latest BIGINT, 
	started_at BIGINT, 
	CONSTRAINT pk_start_estimates PRIMARY KEY (job_id)
);
CREATE TABLE submissions (
	id INTEGER NOT NULL, 
	project_id VARCHAR(64) NOT NULL, 
	experiment_id VARCHAR(64) NOT NULL, 
	provenance JSON NOT NULL, 
	created_by VARCHAR(64) NOT NULL, 
	created_at BIGINT NOT NULL, 
	CONSTRAINT pk_submissions PRIMARY KEY (id), 
	CONSTRAINT fk_submissions_created_by FOREIGN KEY(created_by) REFERENCES users (id), 
	CONSTRAINT fk_submissions_project_id_experiment_id FOREIGN KEY(project_id, experiment_id) REFERENCES experiments (project_id, id) ON DELETE CASCADE
);
INSERT INTO "submissions" VALUES(1,'prj_01m8ngq2aeff5873dagdg1vz5v','cartpole-dqn-76aec5eba545f136','{}','usr_01m8ngq2aeejab104zgtkez2fz',1796018506434989);
CREATE TABLE summary_progress (
	id SMALLINT NOT NULL, 
	event_id BIGINT NOT NULL, 
	CONSTRAINT pk_summary_progress PRIMARY KEY (id)
);
INSERT INTO "summary_progress" VALUES(1,0);
CREATE TABLE telemetry_batches (
	attempt_id VARCHAR(64) NOT NULL, 
	first_seq BIGINT NOT NULL, 
	last_seq BIGINT NOT NULL, 
	digests BLOB NOT NULL, 
	received_at BIGINT NOT NULL, 
	CONSTRAINT pk_telemetry_batches PRIMARY KEY (attempt_id, first_seq), 
	CONSTRAINT fk_telemetry_batches_attempt_id FOREIGN KEY(attempt_id) REFERENCES attempts (id) ON DELETE CASCADE
);
INSERT INTO "telemetry_batches" VALUES('att_01m8ngq32gfj8tb1251nwrmg2w',1,3,X'0C8A5772DCC5C4AD25974B5191214D50CA4EEBF0CD2C94B2C6135573BD853C9E9C4AF52F6EABA8636286E00E8F846562',1796018506930983);
INSERT INTO "telemetry_batches" VALUES('att_01m8ngq32gfj8tb1251nwrmg2w',4,5,X'98E28425AB3EBA8605FED40650341DAB95AA0748414AD79B221B19E302A79332',1796018506946996);
INSERT INTO "telemetry_batches" VALUES('att_01m8ngq32gfj8tb1251nwrmg2w',6,6,X'9D4F472C631A3C75B177A2CEEA3DAC65',1796018506979987);
CREATE TABLE threshold_crossings (
	threshold_id BIGINT NOT NULL, 
	run_id VARCHAR(64) NOT NULL, 
	env_step BIGINT NOT NULL, 
	wall FLOAT NOT NULL, 
	seconds FLOAT NOT NULL, 
	CONSTRAINT pk_threshold_crossings PRIMARY KEY (threshold_id, run_id), 
	CONSTRAINT fk_threshold_crossings_threshold_id FOREIGN KEY(threshold_id) REFERENCES thresholds (id) ON DELETE CASCADE, 
	CONSTRAINT fk_threshold_crossings_run_id FOREIGN KEY(run_id) REFERENCES runs (id) ON DELETE CASCADE
);
CREATE TABLE thresholds (
	id INTEGER NOT NULL PRIMARY KEY AUTOINCREMENT, 
	project_id VARCHAR(64) NOT NULL, 
	name VARCHAR(64) NOT NULL, 
	series VARCHAR(160) NOT NULL, 
	value FLOAT NOT NULL, 
	is_at_least BOOLEAN NOT NULL, 
	CONSTRAINT fk_thresholds_project_id FOREIGN KEY(project_id) REFERENCES projects (id) ON DELETE CASCADE, 
	CONSTRAINT uq_thresholds_project_id_name UNIQUE (project_id, name)
);
CREATE TABLE "tokens" (
	id VARCHAR(64) NOT NULL, 
	project_id VARCHAR(64), 
	user_id VARCHAR(64) NOT NULL, 
	name VARCHAR(64) NOT NULL, 
	secret_hash VARCHAR(64) NOT NULL, 
	scopes JSON NOT NULL, 
	created_at BIGINT NOT NULL, 
	expires_at BIGINT, 
	last_used_at BIGINT, 
	revoked_at BIGINT, 
	parent_id VARCHAR(64), previous_hash VARCHAR(64), previous_until BIGINT, last_used_address VARCHAR(64), 
	CONSTRAINT pk_tokens PRIMARY KEY (id), 
	CONSTRAINT fk_tokens_user_id FOREIGN KEY(user_id) REFERENCES users (id) ON DELETE CASCADE, 
	CONSTRAINT uq_tokens_secret_hash UNIQUE (secret_hash), 
	CONSTRAINT fk_tokens_project_id FOREIGN KEY(project_id) REFERENCES projects (id) ON DELETE CASCADE
);
CREATE TABLE usage_accounts (
	pool VARCHAR(64) NOT NULL, 
	project_id VARCHAR(64) NOT NULL, 
	user_id VARCHAR(64) NOT NULL, 
	weighted_seconds FLOAT NOT NULL, 
	CONSTRAINT pk_usage_accounts PRIMARY KEY (pool, project_id, user_id)
);
INSERT INTO "usage_accounts" VALUES('default','prj_01m8ngq2aeff5873dagdg1vz5v','usr_01m8ngq2aeejab104zgtkez2fz',8.3621754803745718754e+13);
CREATE TABLE usage_entries (
	id VARCHAR(64) NOT NULL, 
	kind VARCHAR(16) NOT NULL, 
	pool VARCHAR(64) NOT NULL, 
	project_id VARCHAR(64) NOT NULL, 
	user_id VARCHAR(64) NOT NULL, 
	experiment_id VARCHAR(64) NOT NULL, 
	job_id VARCHAR(64) NOT NULL, 
	attempt_id VARCHAR(64) NOT NULL, 
	worker_id VARCHAR(64) NOT NULL, 
	schedule VARCHAR(32) NOT NULL, 
	priority_class VARCHAR(16) NOT NULL, 
	environment VARCHAR(128), 
	devices INTEGER NOT NULL, 
	is_gpu BOOLEAN NOT NULL, 
	started_at BIGINT NOT NULL, 
	ended_at BIGINT NOT NULL, 
	CONSTRAINT pk_usage_entries PRIMARY KEY (id), 
	CONSTRAINT uq_usage_entries_attempt_id_kind UNIQUE (attempt_id, kind)
);
INSERT INTO "usage_entries" VALUES('use_01m8ngq3eaevcr9bjrctkc0jvc','used','default','prj_01m8ngq2aeff5873dagdg1vz5v','usr_01m8ngq2aeejab104zgtkez2fz','cartpole-dqn-76aec5eba545f136','job_01m8ngq2pqeq3bdw4x2z85yt1k','att_01m8ngq32gfj8tb1251nwrmg2w','wrk_01m8ngq2ddfz2an1mbbxzmp1n7','train','normal','CartPole-v1',1,0,1796018506839010,1796018507198011);
INSERT INTO "usage_entries" VALUES('use_01m8ngq3hefd8bfpr0ggsyk6st','used','default','prj_01m8ngq2aeff5873dagdg1vz5v','usr_01m8ngq2aeejab104zgtkez2fz','cartpole-dqn-76aec5eba545f136','job_01m8ngq2pqf0zrc2yqdfywcd6w','att_01m8ngq3gbem7tpav6x96kdyjt','wrk_01m8ngq2ddfz2an1mbbxzmp1n7','train','normal','CartPole-v1',1,0,1796018507275982,1796018507307002);
CREATE TABLE users (
	id VARCHAR(64) NOT NULL, 
	name VARCHAR(64) NOT NULL, 
	password_hash VARCHAR(256), 
	created_at BIGINT NOT NULL, 
	disabled_at BIGINT, display_name VARCHAR(64) DEFAULT '' NOT NULL, email VARCHAR(254), is_admin BOOLEAN DEFAULT 0 NOT NULL, service_project_id VARCHAR(64), made_by VARCHAR(64), 
	CONSTRAINT pk_users PRIMARY KEY (id), 
	CONSTRAINT uq_users_name UNIQUE (name)
);
INSERT INTO "users" VALUES('usr_01m8ngq2aeejab104zgtkez2fz','admin',NULL,1796018506102985,NULL,'',NULL,1,NULL,NULL);
INSERT INTO "users" VALUES('usr_01m8ngq2aefa5rvxxk2mwg1843','bea',NULL,1796018506110992,NULL,'',NULL,0,NULL,NULL);
CREATE TABLE views (
	id VARCHAR(64) NOT NULL, 
	project_id VARCHAR(64) NOT NULL, 
	owner_id VARCHAR(64) NOT NULL, 
	name VARCHAR(64) NOT NULL, 
	visibility VARCHAR(16) NOT NULL, 
	state JSON NOT NULL, 
	created_at BIGINT NOT NULL, 
	updated_at BIGINT NOT NULL, 
	CONSTRAINT pk_views PRIMARY KEY (id), 
	CONSTRAINT fk_views_project_id FOREIGN KEY(project_id) REFERENCES projects (id) ON DELETE CASCADE, 
	CONSTRAINT fk_views_owner_id FOREIGN KEY(owner_id) REFERENCES users (id) ON DELETE CASCADE, 
	CONSTRAINT uq_views_project_id_owner_id_name UNIQUE (project_id, owner_id, name)
);
CREATE TABLE "workers" (
	id VARCHAR(64) NOT NULL, 
	name VARCHAR(64) NOT NULL, 
	pool VARCHAR(64) NOT NULL, 
	host VARCHAR(64) NOT NULL, 
	boot_id VARCHAR(64) NOT NULL, 
	pid BIGINT NOT NULL, 
	slots INTEGER NOT NULL, 
	gpus JSON NOT NULL, 
	gpu_count INTEGER NOT NULL, 
	work_order_versions JSON NOT NULL, 
	version VARCHAR(64) NOT NULL, 
	hardware JSON NOT NULL, 
	packages JSON NOT NULL, 
	catalogue JSON NOT NULL, 
	silent_seconds FLOAT NOT NULL, 
	draining BOOLEAN NOT NULL, 
	created_by VARCHAR(64), 
	registered_at BIGINT NOT NULL, 
	last_heartbeat_at BIGINT NOT NULL, 
	secret_hash VARCHAR(64), 
	former_name VARCHAR(64), 
	secret_since BIGINT, 
	next_secret_hash VARCHAR(64), 
	rotation_nonce VARCHAR(64), 
	contract_version INTEGER DEFAULT '1' NOT NULL, 
	queue VARCHAR(160) DEFAULT ('') NOT NULL, 
	takes_several_slots BOOLEAN DEFAULT 0 NOT NULL, 
	clock_skew_seconds FLOAT, 
	broker_password_hash VARCHAR(64), 
	replaced_at BIGINT, failed_starts INTEGER DEFAULT '0' NOT NULL, drain_reason TEXT, 
	CONSTRAINT pk_workers PRIMARY KEY (id)
);
INSERT INTO "workers" VALUES('wrk_01m8ngq2ddfz2an1mbbxzmp1n7','w1','default','host-1','boot-1',100,12,'[]',0,'[1, 2]','0.1.0','{}','{}','{"agents": [{"name": "dqn", "parameters_schema": {}, "code": null, "action_spaces": ["discrete"]}, {"name": "ppo", "parameters_schema": {}, "code": null, "action_spaces": ["discrete", "box"]}, {"name": "tiny", "parameters_schema": {"type": "object", "properties": {"rate": {"type": "number", "exclusiveMinimum": 0, "maximum": 1, "default": 0.5}, "table": {"type": "array", "items": {"$ref": "#/$defs/cell"}}}, "$defs": {"cell": {"type": "integer"}}, "additionalProperties": false}, "code": {"kind": "entrypoint", "distribution": "tiny-agents", "version": "1.2.0", "digest": "7777777777777777777777777777777777777777777777777777777777777777"}, "action_spaces": ["discrete"]}], "model_functions": [{"name": "mlp", "parameters_schema": {}, "code": null}, {"name": "tiny", "parameters_schema": {"type": "object", "properties": {"rate": {"type": "number", "exclusiveMinimum": 0, "maximum": 1, "default": 0.5}, "table": {"type": "array", "items": {"$ref": "#/$defs/cell"}}}, "$defs": {"cell": {"type": "integer"}}, "additionalProperties": false}, "code": {"kind": "entrypoint", "distribution": "tiny-agents", "version": "1.2.0", "digest": "7777777777777777777777777777777777777777777777777777777777777777"}}], "input_functions": [{"name": "rows", "parameters_schema": {"properties": {"batch_size": {"type": "integer", "default": 32}}}, "code": null}], "environments": [{"id": "CartPole-v1", "observation_space": null, "action_space": {"kind": "discrete", "shape": [], "n": 2, "dtype": ""}, "max_episode_steps": 500, "code": null}, {"id": "Pendulum-v1", "observation_space": null, "action_space": {"kind": "box", "shape": [1], "n": null, "dtype": ""}, "max_episode_steps": 200, "code": null}], "schedules": ["train", "evaluate", "continuous_eval", "continuous_eval_on_train_data", "train_and_evaluate", "continuous_train_and_evaluate", "test", "export"], "imports": [], "export_formats": ["weights", "program"]}',30.0,0,'usr_01m8ngq2aeejab104zgtkez2fz',1796018506171985,1796018506171985,'5d095cf4aab036e1613d5b00d0e615d780d2acac110a9b1d7b104e2d482184b4',NULL,NULL,NULL,NULL,2,'palestra.pool.default.wrk_01m8ngq2ddfz2an1mbbxzmp1n7',0,NULL,'0417bb8bf4454ecfc7d390d53c6751909d78099b74f7837e0c422fcf986ce83b',NULL,0,NULL);
CREATE INDEX ix_events_project_id_id ON events (project_id, id);
CREATE INDEX ix_experiments_project_id_created_at_id ON experiments (project_id, created_at, id);
CREATE INDEX ix_experiments_project_id_name_id ON experiments (project_id, name, id);
CREATE INDEX ix_jobs_project_id_created_at_id ON jobs (project_id, created_at, id);
CREATE INDEX ix_jobs_project_id_experiment_id ON jobs (project_id, experiment_id);
CREATE INDEX ix_jobs_state_pool ON jobs (state, pool);
CREATE INDEX ix_submissions_project_id_experiment_id ON submissions (project_id, experiment_id);
CREATE UNIQUE INDEX uq_attempts_live_job ON attempts (job_id) WHERE state IN ('starting', 'running');
CREATE UNIQUE INDEX uq_attempts_live_slot ON attempts (worker_id, slot) WHERE state IN ('starting', 'running');
CREATE INDEX ix_runs_project_id_created_at_id ON runs (project_id, created_at, id);
CREATE INDEX ix_artifacts_blob_id ON artifacts (blob_id);
CREATE INDEX ix_artifacts_run_id_created_at_id ON artifacts (run_id, created_at, id);
CREATE INDEX ix_attempt_runs_run_id_fence ON attempt_runs (run_id, fence);
CREATE UNIQUE INDEX uq_attempt_runs_live_training ON attempt_runs (run_id) WHERE live_training;
CREATE INDEX ix_epoch_stats_run_id_fence_seq ON epoch_stats (run_id, fence, seq);
CREATE INDEX ix_evaluations_run_id_fence_seq ON evaluations (run_id, fence, seq);
CREATE INDEX ix_job_runs_run_id ON job_runs (run_id);
CREATE INDEX ix_snapshots_run_id_fence_seq ON snapshots (run_id, fence, seq);
CREATE INDEX ix_audit_project_id_id ON audit (project_id, id);
CREATE INDEX ix_audit_object_type_object_id_id ON audit (object_type, object_id, id);
CREATE INDEX ix_audit_user_id_id ON audit (user_id, id) WHERE user_id IS NOT NULL;
CREATE INDEX ix_audit_outcome_id ON audit (outcome, id) WHERE outcome = 'refused';
CREATE INDEX ix_audit_at ON audit (at);
CREATE INDEX ix_users_service_project_id ON users (service_project_id);
CREATE INDEX ix_tokens_parent_id ON tokens (parent_id);
CREATE INDEX ix_tokens_project_id_created_at_id ON tokens (project_id, created_at, id);
CREATE INDEX ix_tokens_user_id_created_at_id ON tokens (user_id, created_at, id);
CREATE INDEX ix_login_sessions_user_id_ended_at ON login_sessions (user_id, ended_at);
CREATE INDEX ix_invitations_created_at_id ON invitations (created_at, id);
CREATE INDEX ix_experiments_created_by_created_at_id ON experiments (created_by, created_at, id);
CREATE INDEX ix_runs_created_by_created_at_id ON runs (created_by, created_at, id);
CREATE INDEX ix_jobs_created_by_created_at_id ON jobs (created_by, created_at, id);
CREATE INDEX ix_tokens_previous_hash ON tokens (previous_hash);
CREATE INDEX ix_log_blocks_attempt_id ON log_blocks (attempt_id);
CREATE INDEX ix_snapshots_attempt_id ON snapshots (attempt_id);
CREATE INDEX ix_artifacts_project_id ON artifacts (project_id);
CREATE INDEX ix_attempts_project_id ON attempts (project_id);
CREATE INDEX ix_runs_submission_id ON runs (submission_id);
CREATE INDEX ix_project_pools_pool_id ON project_pools (pool_id);
CREATE INDEX ix_enrolment_tokens_pool_id_created_at_id ON enrolment_tokens (pool_id, created_at, id);
CREATE INDEX ix_usage_entries_pool_ended_at ON usage_entries (pool, ended_at);
CREATE INDEX ix_usage_entries_project_id_ended_at ON usage_entries (project_id, ended_at);
CREATE INDEX ix_usage_entries_user_id_ended_at ON usage_entries (user_id, ended_at);
CREATE INDEX ix_jobs_assigned_worker_id ON jobs (assigned_worker_id) WHERE assigned_worker_id IS NOT NULL;
CREATE INDEX ix_jobs_charged ON jobs (pool) WHERE charged_weight IS NOT NULL;
CREATE INDEX ix_usage_entries_ended_at ON usage_entries (ended_at);
CREATE INDEX ix_start_estimates_pool_started_at ON start_estimates (pool, started_at);
CREATE INDEX ix_start_estimates_open ON start_estimates (pool) WHERE started_at IS NULL;
CREATE INDEX ix_experiments_definition_hash ON experiments (definition_hash);
CREATE INDEX ix_experiments_env_agent ON experiments (env, agent);
CREATE INDEX ix_jobs_finished ON jobs (experiment_id, finished_at) WHERE finished_at IS NOT NULL;
CREATE INDEX ix_usage_entries_job_id ON usage_entries (job_id);
CREATE INDEX ix_job_dependencies_after_id ON job_dependencies (after_id);
CREATE INDEX ix_jobs_start_order ON jobs (pool, priority_class, project_id, created_by, priority DESC, own_place, seed_index, queued_at, id) WHERE state = 'queued' AND open_dependencies = 0;
CREATE INDEX ix_pool_windows_pool_id_ends_at ON pool_windows (pool_id, ends_at);
CREATE INDEX ix_curve_tails_run_id_id ON curve_tails (run_id, id);
CREATE UNIQUE INDEX uq_curve_blocks_order ON curve_blocks (series_id, fence, attempt_id, first_seq);
CREATE INDEX ix_curve_blocks_not_converted ON curve_blocks (series_id) WHERE levels = -1;
CREATE INDEX ix_run_summaries_fence_run_id ON run_summaries (fence, run_id);
CREATE INDEX ix_series_summaries_best ON series_summaries (name_id, setup_id, best, run_id);
CREATE INDEX ix_series_summaries_last ON series_summaries (name_id, setup_id, last, run_id);
CREATE INDEX ix_series_summaries_mean10 ON series_summaries (name_id, setup_id, mean10, run_id);
CREATE INDEX ix_definition_members_path_text ON definition_members (path, text);
CREATE INDEX ix_runs_filters ON runs (project_id, state, experiment_id, seed, created_by, created_at, id);
CREATE INDEX ix_evaluations_latest ON evaluations (run_id, env_step, update_count, id) WHERE superseded = 0 AND source = 'evaluation';
CREATE INDEX ix_evaluations_best ON evaluations (run_id, score) WHERE superseded = 0 AND source = 'evaluation';
CREATE INDEX ix_threshold_crossings_run_id ON threshold_crossings (run_id);
CREATE INDEX ix_threshold_crossings_env_step ON threshold_crossings (threshold_id, env_step, run_id);
CREATE INDEX ix_threshold_crossings_seconds ON threshold_crossings (threshold_id, seconds, run_id);
CREATE INDEX ix_views_owner_id ON views (owner_id);
CREATE INDEX ix_definition_members_path_number ON definition_members (path, number);
CREATE UNIQUE INDEX uq_epoch_blocks_order ON epoch_blocks (run_id, fence, first_seq);
CREATE INDEX ix_evaluations_snapshot_id ON evaluations (snapshot_id) WHERE snapshot_id IS NOT NULL;
CREATE INDEX ix_evaluations_job_id ON evaluations (job_id) WHERE snapshot_id IS NOT NULL;
CREATE INDEX ix_memberships_user_id ON memberships (user_id);
CREATE INDEX ix_workers_pool ON workers (pool);
CREATE UNIQUE INDEX ix_workers_secret_hash ON workers (secret_hash);
CREATE UNIQUE INDEX ix_workers_next_secret_hash ON workers (next_secret_hash);
CREATE UNIQUE INDEX ix_workers_name ON workers (name) WHERE replaced_at IS NULL;
CREATE INDEX ix_open_log_lines_attempt_id ON open_log_lines (attempt_id);
DELETE FROM "sqlite_sequence";
INSERT INTO "sqlite_sequence" VALUES('events',44);
COMMIT;
